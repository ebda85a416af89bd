package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"github.com/leaf-idgen/leaf"
)

// The fence file is text, one line per write:
//
//	<crc32c of the rest, 8 hex digits> <JSON>\n
//
// The first line is the header, each further line a list of marks that were
// written and synced together; of several marks of one tag the last one counts.
// JSON keeps line breaks out of the lines, so a torn write can only spoil the last
// line. That line was never acknowledged and is dropped. A line that is spoilt
// anywhere else was acknowledged once: the file is refused, because a forgotten
// mark could repeat IDs.
//
// The lines are counted, over all files that ever had the name: the header says how
// many came before it. How many there were at least stands in a second file, which is
// synced after each write (end.go), so that a file that lost whole lines at its end,
// or is an older one, is refused as well. Version 1 counted nothing.

const (
	fileName    = "fence"
	fileVersion = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	File    string `json:"file"` // "leaf-fence"
	Version int    `json:"version"`
	Node    string `json:"node"`            // identity of the data directory
	Lines   int64  `json:"lines,omitempty"` // that were written before, without headers
}

type entry struct {
	Tag     string `json:"tag"`
	High    int64  `json:"high"`
	Latched bool   `json:"latched,omitempty"`
	Rebuilt bool   `json:"rebuilt,omitempty"`
	Unread  bool   `json:"unread,omitempty"`
	Suspect bool   `json:"suspect,omitempty"`
	Read    int64  `json:"read,omitempty"`
}

func entryOf(tag string, m Mark) entry {
	return entry{tag, m.High, m.Latched, m.Rebuilt, m.Unread, m.Suspect, m.Read}
}

// appendLine appends the line for v to dst.
func appendLine(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("fence: encode a fence line: " + err.Error()) // plain structs of strings and numbers always encode
	}
	dst = fmt.Appendf(dst, "%08x ", crc32.Checksum(text, castagnoli))
	return append(append(dst, text...), '\n')
}

// readLine checks one line without its line break and decodes it into v.
func readLine(line []byte, v any) error {
	text, err := unseal(line)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// unseal returns what follows the checksum, if that is right.
func unseal(line []byte) (text []byte, err error) {
	sum, text, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(sum) != 8 {
		return nil, fmt.Errorf("no checksum at its start")
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil {
		return nil, fmt.Errorf("checksum %q is not hexadecimal", sum)
	}
	if got := crc32.Checksum(text, castagnoli); uint64(got) != want {
		return nil, fmt.Errorf("checksum is %08x, should be %s", got, sum)
	}
	return text, nil
}

// whole reports whether a line was written to its end, whatever it says.
func whole(line []byte) bool {
	text, err := unseal(line)
	return err == nil && json.Valid(text)
}

// swallowed reports whether a last line that does not read is a good one with more
// behind it: its line break was spoilt, so it may have been acknowledged.
func swallowed(line []byte) bool {
	sum, text, _ := bytes.Cut(line, []byte(" "))
	d := json.NewDecoder(bytes.NewReader(text))
	var first json.RawMessage
	if d.Decode(&first) != nil {
		return false
	}
	if len(bytes.Trim(text[d.InputOffset():], "\x00")) == 0 {
		return false // a write that a crash cut at a block's end is followed by zeros, if by anything
	}
	return fmt.Sprintf("%08x", crc32.Checksum(text[:d.InputOffset()], castagnoli)) == string(sum)
}

// encode returns a whole file; lines were written before it.
func encode(node string, lines int64, marks map[string]Mark) []byte {
	out := appendLine(nil, header{File: "leaf-fence", Version: fileVersion, Node: node, Lines: lines})
	tags := make([]string, 0, len(marks))
	for tag := range marks {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	for _, tag := range tags {
		out = appendLine(out, []entry{entryOf(tag, marks[tag])})
	}
	return out
}

// decode reads a file that belongs to node. lines is how many were written up to
// its end. A last line that was not written to its end is left out; the file must be
// written anew before anything is appended to it.
func decode(content []byte, node string) (marks map[string]Mark, lines int64, err error) {
	if len(content) == 0 {
		return nil, 0, errors.New("the fence file is empty")
	}
	marks = make(map[string]Mark)
	for number := 1; len(content) > 0; number++ {
		line, rest, complete := bytes.Cut(content, []byte("\n"))
		if number == 1 {
			lines, err = readHeader(line, node)
		} else {
			err = readMarks(line, marks)
		}
		switch {
		case err == nil && complete && number == 1:
		case err == nil && complete:
			lines++
		case number > 1 && len(rest) == 0 && !swallowed(line) && (err == nil || !whole(line)):
			return marks, lines, nil
		case err == nil: // only the header can be cut just before its line break and get here
			return nil, 0, fmt.Errorf("fence file, line %d: ends before its line break", number)
		default:
			return nil, 0, fmt.Errorf("fence file, line %d: %w", number, err)
		}
		content = rest
	}
	return marks, lines, nil
}

func readHeader(line []byte, node string) (lines int64, err error) {
	var h header
	if err := readLine(line, &h); err != nil {
		return 0, err
	}
	switch {
	case h.File != "leaf-fence" || h.Version < 1 || h.Version > fileVersion || h.Lines < 0:
		return 0, fmt.Errorf("is a %q of version %d, should be a leaf-fence of version %d", h.File, h.Version, fileVersion)
	case !belongs(h.Node, node):
		return 0, fmt.Errorf("belongs to node %s, but this data directory is node %s", h.Node, node)
	}
	return h.Lines, nil
}

// belongs reports whether a file with the identity of has its place in the data directory of node. Programs
// with an earlier version could leave the identity out.
func belongs(of, node string) bool { return of == node || of == "" }

func readMarks(line []byte, marks map[string]Mark) error {
	var entries []entry
	if err := readLine(line, &entries); err != nil {
		return err
	}
	for _, e := range entries {
		if err := leaf.ValidateTag(e.Tag); err != nil {
			return err
		}
		if e.High < 0 || e.High > MaxEnd {
			return fmt.Errorf("tag %q has high=%d, must be 0 to %d", e.Tag, e.High, int64(MaxEnd))
		}
		if e.Read < 0 || e.Read > e.High {
			return fmt.Errorf("tag %q has read=%d, must be 0 to %d", e.Tag, e.Read, e.High)
		}
		marks[e.Tag] = Mark{High: e.High, Latched: e.Latched, Rebuilt: e.Rebuilt, Read: e.Read, Unread: e.Unread, Suspect: e.Suspect}
	}
	return nil
}
