package fence

import (
	"fmt"
	"strings"

	"github.com/leaf-idgen/leaf"
)

func diskAlarm(file string, err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmDisk, Subject: file,
		Text: fmt.Sprintf("file %q of the data directory cannot be written, so no new ranges are served: %s", file, firstLine(err)),
		Do:   "if there is an alarm of code file, do what that one says; else look at the disk's free space and health, and do not restart this node before it heals",
	}
}

// firstLine returns the first line of an error: an alarm has no more.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
