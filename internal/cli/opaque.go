package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/opaque"
)

// opaqueGroup are the commands about opaque IDs.
type opaqueGroup struct {
	Encode opaqueEncodeCmd `cmd:"" help:"Print the opaque ID of each ID."`
	Decode opaqueDecodeCmd `cmd:"" help:"Print the ID of each opaque ID."`
	Key    opaqueKeyCmd    `cmd:"" help:"Make a file of keys, or add a key to one."`
}

// opaqueFlags say which tag, with which keys.
type opaqueFlags struct {
	Keys string `required:"" secretfile:"" placeholder:"FILE" help:"File of keys, as leaf opaque key makes it. All who encode or decode need the same one."`
	Tag  string `required:"" placeholder:"TAG" help:"The tag of the IDs: the same ID of another tag has another opaque ID."`
	Text string `default:"decimal" enum:"decimal,base62,crockford" help:"How opaque IDs are written: decimal, base62 or crockford."`
}

// open returns what encodes and decodes, and how opaque IDs are written.
func (f opaqueFlags) open() (*opaque.Permutation, opaque.Text, error) {
	if err := leaf.ValidateTag(f.Tag); err != nil {
		return nil, 0, err
	}
	text, err := opaque.ParseText(f.Text)
	if err != nil {
		return nil, 0, err
	}
	ring, err := opaque.ReadRing(f.Keys)
	if err != nil {
		return nil, 0, err
	}
	return ring.Tag(f.Tag), text, nil
}

type opaqueEncodeCmd struct {
	Flags opaqueFlags `embed:""`
	IDs   []string    `arg:"" name:"id" help:"IDs, in decimal."`
}

// Help implements kong.HelpProvider.
func (opaqueEncodeCmd) Help() string {
	return `An opaque ID has the size of an ID, and tells neither how many there are nor when it was made. With the keys it is turned back. Nothing is stored, and no node is asked. docs/OPAQUE.md says what it protects from, and from what it does not.

  leaf opaque encode --keys opaque.keys --tag order --text base62 1 2 3`
}

// Run prints opaque IDs, one a line.
func (c *opaqueEncodeCmd) Run(p Process) error {
	permutation, text, err := c.Flags.open()
	if err != nil {
		return err
	}
	return eachLine(p.Stdout, c.IDs, func(word string) (string, error) {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return "", leaf.BadField("ID", word, "must be a decimal number from 0 to 2^63-1")
		}
		encoded, err := permutation.Encode(id)
		return text.Format(encoded), err
	})
}

type opaqueDecodeCmd struct {
	Flags opaqueFlags `embed:""`
	IDs   []string    `arg:"" name:"opaque-id" help:"Opaque IDs, written as --text says."`
}

// Help implements kong.HelpProvider.
func (opaqueDecodeCmd) Help() string {
	return `Any number decodes to some ID. Check that this ID exists, and that the caller may see it.

  leaf opaque decode --keys opaque.keys --tag order --text base62 2WcIj0XUyFs`
}

// Run prints IDs, one a line.
func (c *opaqueDecodeCmd) Run(p Process) error {
	permutation, text, err := c.Flags.open()
	if err != nil {
		return err
	}
	return eachLine(p.Stdout, c.IDs, func(word string) (string, error) {
		encoded, err := text.Parse(word)
		if err != nil {
			return "", err
		}
		id, err := permutation.Decode(encoded)
		return strconv.FormatInt(id, 10), err
	})
}

// eachLine prints what convert makes of each word. It prints nothing if one of them is wrong.
func eachLine(w io.Writer, words []string, convert func(string) (string, error)) error {
	var out bytes.Buffer
	for _, word := range words {
		line, err := convert(word)
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, line)
	}
	return printLines(w, out.Bytes())
}

type opaqueKeyCmd struct {
	Keys        string `required:"" secretfile:"" placeholder:"FILE" help:"The file. If it is there, it gets one more key, which decodes only until its line issue names it."`
	Bits        int    `default:"63" placeholder:"BITS" help:"Bits of an opaque ID in a new file: 63, or 53 for programs in JavaScript. (default: 63)"`
	VersionBits int    `default:"2" placeholder:"BITS" help:"How many of them name the key in a new file, 0 to 8: an ID has the rest, and 2 bits are 4 keys. (default: 2)"`
}

// Help implements kong.HelpProvider.
func (opaqueKeyCmd) Help() string {
	return `Give the file to every node and program that encodes or decodes, and keep a copy: without it, an opaque ID cannot be turned back.

To change the key: run this command, give the new file to all, and when all have it, set its line issue to the new version and give it to all again. Keep the old key as long as opaque IDs of it are in use, and the lines "used" for ever: a version that had a key never gets another one, or the same opaque ID would be made of two IDs.

  leaf opaque key --keys opaque.keys`
}

// Run makes or extends the file.
func (c *opaqueKeyCmd) Run(p Process) error {
	ring, err := opaque.ReadRing(c.Keys)
	if errors.Is(err, fs.ErrNotExist) {
		if ring, err = opaque.NewRing(c.Bits, c.VersionBits); err != nil {
			return err
		}
		if err := appendTo(c.Keys, os.O_CREATE|os.O_EXCL, ring.Text()); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "%s has key %d, which encodes and decodes.\n", c.Keys, ring.Issue)
		return err
	}
	if err != nil {
		return err
	}
	version, err := ring.Add()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Keys, err)
	}
	if err := appendTo(c.Keys, 0, fmt.Appendf(nil, "\nkey %d %x\nused %[1]d\n", version, ring.Keys[version])); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s has key %d, which decodes. Key %d encodes: when all have this file, change its line to \"issue %d\".\n",
		c.Keys, version, ring.Issue, version)
	return err
}

// appendTo adds to a file, or makes one that only its owner reads. Owner, mode and comments of a file stay.
func appendTo(name string, flag int, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|flag, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		if _, err = f.Write(content); err != nil {
			err = errors.Join(err, f.Truncate(info.Size())) // half a key is none
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
