package format

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/number"
)

// Formats are the formats that a node can write. The zero value, and nil, have neither keys nor templates. It is safe for
// concurrent use.
type Formats struct {
	Keys // of opaque IDs

	// Templates returns the template of a tag, from memory. known is false if the node does not know the tag yet: it does
	// once the tag has issued an ID. The error is leaf.ErrBadRequest if the tag has no template that can be used. Set it
	// before the first request; nil knows no tag.
	Templates func(tag string) (t *number.Template, known bool, err error)
}

// Segment returns the format with this name for the IDs of a tag, nil for number and "". The
// error is leaf.ErrBadRequest, or why the ring is held.
func (f *Formats) Segment(tag, name string) (*Format, error) {
	if name == Text {
		return f.text(tag)
	}
	return f.keys().open(tag, name)
}

// Snowflake is Segment for the IDs of snowflake mode, whatever the key of the request.
func (f *Formats) Snowflake(name string) (*Format, error) {
	if name == Text {
		return nil, leaf.BadField("format", name, "is for tags of segment mode: IDs of snowflake mode have no tag, whose format would count")
	}
	return f.keys().open(SnowflakeTag, name)
}

func (f *Formats) keys() *Keys {
	if f == nil {
		return nil
	}
	return &f.Keys
}

// text is the format of a tag's template. A tag that this node does not know is not looked up: a client could make the
// node ask its database for any name. Its first ID makes it known, so its template is looked for after that.
func (f *Formats) text(tag string) (*Format, error) {
	find := func() (writer, bool, error) {
		if f == nil || f.Templates == nil {
			return nil, false, nil
		}
		t, known, err := f.Templates(tag)
		return template{t}, known, err
	}
	switch w, known, err := find(); {
	case !known:
		return &Format{name: Text, find: func() (writer, error) {
			w, known, err := find()
			if !known {
				err = fmt.Errorf("%w: %q", leaf.ErrUnknownTag, tag) // deleted since it has issued the IDs
			}
			return w, err
		}}, nil
	case err != nil:
		return nil, err
	default:
		return &Format{name: Text, by: w}, nil
	}
}

// template writes IDs by the template of a tag.
type template struct{ t *number.Template }

func (w template) fits(r leaf.Range) bool {
	return w.t.Fits(r.Lo) && w.t.Fits(r.Hi-1) && r.Hi-1-r.Lo == w.t.Sequence(r.Hi-1)-w.t.Sequence(r.Lo)
}

func (w template) what() string {
	if period := w.t.Period(); period != "" {
		return fmt.Sprintf("the format of the tag, %s, is for numbers from 0 to %d in each %s", w.t, w.t.Largest(), period)
	}
	return fmt.Sprintf("the format of the tag, %s, is for IDs from 0 to %d", w.t, w.t.Largest())
}

func (w template) append(dst []byte, id int64) ([]byte, error) { return w.t.Append(dst, id) }
