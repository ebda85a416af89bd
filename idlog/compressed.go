package idlog

import (
	"bufio"
	"strings"
)

// compressions are the first bytes of compressed files. A text log that a [Writer] wrote
// never begins with them, because a key with such bytes is quoted.
var compressions = []struct{ magic, program string }{
	{"\x1f\x8b", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\xfd7zXZ\x00", "xz"},
	{"PK\x03\x04", "zip"},
}

// refuseCompressed returns an error if a compressed file begins at the place at. Without
// it a short compressed file, which has no end of line, would be taken for a torn tail.
func refuseCompressed(in *bufio.Reader, at Place) error {
	head, _ := in.Peek(headerSize)
	for _, c := range compressions {
		if strings.HasPrefix(string(head), c.magic) {
			at.Line = 1
			return &SyntaxError{at, "log", shorten(head), "is compressed (" + c.program + "); unpack it and check the unpacked file"}
		}
	}
	return nil
}
