package fence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leaf-idgen/leaf"
)

// endName is the file that says how many lines the fence file had at least. It is
// synced after the fence file and before the caller hears of success, so that it is
// never ahead of it, whatever crashes. Its first line is a header, each further line,
// sealed as those of the fence file are, the number; the last one counts.
const endName = "fence-end"

const endVersion = 1

type endHeader struct {
	File    string `json:"file"` // "leaf-fence-end"
	Version int    `json:"version"`
	Node    string `json:"node"`
	Lines   int64  `json:"lines"`
}

func encodeEnd(node string, lines int64) []byte {
	return appendLine(nil, endHeader{File: "leaf-fence-end", Version: endVersion, Node: node, Lines: lines})
}

// decodeEnd leaves out a last line that was not written to its end: the number in
// it was not acknowledged.
func decodeEnd(content []byte, node string) (lines int64, err error) {
	head, rest, _ := bytes.Cut(content, []byte("\n"))
	var h endHeader
	if err := readLine(head, &h); err != nil {
		return 0, fmt.Errorf("file %s, line 1: %w", endName, err)
	}
	if h.File != "leaf-fence-end" || h.Version != endVersion || !belongs(h.Node, node) {
		return 0, fmt.Errorf("file %s is a %q of version %d and node %s, should be a leaf-fence-end of version %d and node %s",
			endName, h.File, h.Version, h.Node, endVersion, node)
	}
	lines = h.Lines
	for number := 2; len(rest) > 0; number++ {
		line, behind, complete := bytes.Cut(rest, []byte("\n"))
		switch err := readLine(line, &lines); {
		case err != nil && len(behind) == 0:
			return lines, nil
		case err != nil:
			return 0, fmt.Errorf("file %s, line %d: %w", endName, number, err)
		case !complete:
			return lines, nil
		}
		rest = behind
	}
	return lines, nil
}

// remedy is what the administrator does when the fence files are refused. It does
// not ask for a file to be deleted, nor for a new data directory, which would begin
// with an empty database where the database is in it.
const remedy = "this node no longer knows which ranges it took, so it does not start. If the newest files fence and fence-end are somewhere else, " +
	"put both back; never use a backup. Else run: leaf fence rebuild, with the settings of this node. It makes a new fence file in which every tag is latched, and then prints what to do"

// remedyUnread is for a file that is there and cannot be read: what it says is not lost.
const remedyUnread = "this node does not start without it. Find out why it cannot be read, let this node's user read it, and start the node again. " +
	"Only if the disk has lost the file, run: leaf fence rebuild, with the settings of this node. It makes a new fence file in which every tag is latched, and then prints what to do"

// RefusedError says that the fence files are not whole, and what the administrator does. It matches
// leaf.ErrConflict.
type RefusedError struct{ cause error }

// Error implements error.
func (e *RefusedError) Error() string { return e.cause.Error() }

// Unwrap returns why the files are refused.
func (e *RefusedError) Unwrap() error { return e.cause }

// read reads both files. An error is a *RefusedError.
func (f *Fence) read() error {
	marks, lines, err := readFiles(f.cfg.Disk, f.cfg.Node)
	if err != nil {
		do := remedy
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			do = remedyUnread
		}
		return &RefusedError{fmt.Errorf("%w: %w; %s", leaf.ErrConflict, err, do)}
	}
	f.marks, f.lines = marks, lines
	for _, m := range marks {
		if m.Latched {
			f.latched++
		}
	}
	return nil
}

// readFiles returns the marks, none for a node that never ran, and how many lines were
// written. It is an error if there are fewer than there were.
func readFiles(disk Disk, node string) (marks map[string]Mark, lines int64, err error) {
	content, err := disk.ReadFile(fileName)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case missing:
		marks = map[string]Mark{}
	case err != nil:
		return nil, 0, fmt.Errorf("read the fence file: %w", err)
	default:
		if marks, lines, err = decode(content, node); err != nil {
			return nil, 0, err
		}
	}
	content, err = disk.ReadFile(endName)
	if errors.Is(err, fs.ErrNotExist) {
		return marks, lines, nil // of version 1, or before the first range: the disk knows that it was never written
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the end of the fence file: %w", err)
	}
	end, err := decodeEnd(content, node)
	switch {
	case err != nil:
		return nil, 0, err
	case missing:
		return nil, 0, fmt.Errorf("the fence file is gone; file %s says that it had %d lines", endName, end)
	case lines < end:
		return nil, 0, fmt.Errorf("the fence file lost its end or is an older one: it reaches line %d, file %s says %d", lines, endName, end)
	}
	return marks, lines, nil
}

// Rebuild makes new fence files on the disk of a node whose Allocator New refuses.
// Every tag of the list, and every tag that the old files still name, is latched: none
// is issued before it is repaired. The list says where each row is, or where the board says that
// its ranges end if that is more: a mark below the last repair would be released by it.
// The disk must be locked.
func Rebuild(disk Disk, node string, tags map[string]int64) error {
	old, lines, err := readFiles(disk, node)
	if err == nil {
		return errors.New("the fence files are whole: there is nothing to rebuild")
	}
	marks := map[string]Mark{}
	if content, err := disk.ReadFile(fileName); err == nil {
		old, lines = salvage(content, node)
	}
	if content, err := disk.ReadFile(endName); err == nil {
		if end, err := decodeEnd(content, node); err == nil {
			lines = max(lines, end)
		}
	}
	for tag, m := range old {
		marks[tag] = Mark{High: m.High, Latched: true, Rebuilt: !m.Latched || m.Rebuilt, Unread: m.Unread, Read: m.Read}
	}
	for tag, at := range tags {
		if leaf.ValidateTag(tag) != nil {
			continue // no node issues anything of it, and the file would not be read
		}
		at = min(at, MaxEnd)
		m, known := marks[tag]
		high := max(m.High, at)
		marks[tag] = Mark{High: high, Latched: true, Rebuilt: !known || m.Rebuilt, Unread: m.Unread, Read: high - m.ranges()}
	}
	if err := disk.Replace(fileName, encode(node, lines, marks)); err != nil {
		return fmt.Errorf("write the fence file: %w", err)
	}
	if err := disk.Replace(endName, encodeEnd(node, lines+int64(len(marks)))); err != nil {
		return fmt.Errorf("write the end of the fence file: %w", err)
	}
	return nil
}

// salvage reads what can be read of a spoilt fence file.
func salvage(content []byte, node string) (marks map[string]Mark, lines int64) {
	marks = map[string]Mark{}
	for number, line := range bytes.Split(content, []byte("\n")) {
		if number == 0 {
			lines, _ = readHeader(line, node) // of another node: its marks can only be too careful
			continue
		}
		if readMarks(line, marks) == nil {
			lines++
		}
	}
	return marks, lines
}
