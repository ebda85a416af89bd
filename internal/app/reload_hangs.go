package app

import (
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// readingHangs is how long the configuration and its files may be read before an alarm says so.
const readingHangs = 5 * time.Second

const readingSubject = "reading"

// tellWhileItHangs calls f, which reads the configuration. A file that does not answer blocks it, and each reload after it, and
// no error comes: so an alarm is active while f takes long.
func tellWhileItHangs(alarms leaf.Alarms, f func()) {
	raised := make(chan struct{})
	late := time.AfterFunc(readingHangs, func() {
		defer close(raised)
		alarms.Raise(leaf.Alarm{
			Code: leaf.AlarmConfiguration, Subject: readingSubject,
			Text: fmt.Sprintf("the configuration has been read for more than %v, because one of its files does not answer: until it does, no change of any file counts, such as a token that was revoked", readingHangs),
			Do: "look for a file that does not answer, such as a named pipe or a file on a network file system that is gone, and make it answer; the node goes on by itself then. " +
				"If it is gone for good, name another file in the configuration, look at it with leaf config check, and restart the node",
		})
	})
	f()
	if !late.Stop() {
		<-raised
		alarms.Clear(leaf.AlarmConfiguration, readingSubject)
	}
}
