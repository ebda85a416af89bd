package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// rowValue is the value of a key rows/<tag>.
type rowValue struct {
	formatted
	segment.Options

	MaxID       int64     `json:"max_id,string"`
	Step        int64     `json:"step"`
	Description string    `json:"description,omitempty"`
	UpdateTime  time.Time `json:"update_time"` // by the clock of the node that wrote the row
}

// rowFields are the fields of a row that this version knows.
var rowFields = func() []string {
	options, _ := new(segment.Options).Columns()
	return append([]string{"format", "max_id", "step", "description", "update_time"}, options...)
}()

// parseRow reads a row. A missing max_id or step is not 0. The error is leaf.ErrInvalidRow and
// names the key.
func parseRow(key, text string) (r rowValue, err error) {
	err = parse(key, []byte(text), &r)
	if err == nil {
		fields := fieldsOf(text)
		for _, name := range []string{"max_id", "step"} {
			if len(fields[name]) == 0 || string(fields[name]) == "null" {
				err = unreadable(key, []byte(text), errors.New("it has no field "+name))
			}
		}
	}
	if err != nil {
		return rowValue{}, fmt.Errorf("%w: %w", leaf.ErrInvalidRow, err)
	}
	return r, nil
}

// row returns r as the engine has it.
func (r rowValue) row(tag string) segment.Row {
	return segment.Row{Tag: tag, MaxID: r.MaxID, Step: r.Step, Description: r.Description, UpdateTime: r.UpdateTime, Options: r.Options}
}

// text returns r as it is stored in place of old.
func (r rowValue) text(old string) string { return encodeOver(old, r, rowFields...) }

// encodeOver returns v as it is stored in place of old. own are the fields of v; the others of old stay
// as they are, because a later version of Leaf has written them.
func encodeOver(old string, v any, own ...string) string {
	fields := fieldsOf(old)
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return slices.Contains(own, name) })
	maps.Copy(fields, fieldsOf(encode(v)))
	return encode(fields)
}

// fieldsOf returns the fields of a value that can be read.
func fieldsOf(text string) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal([]byte(text), &fields) // no text is no field
	return fields
}
