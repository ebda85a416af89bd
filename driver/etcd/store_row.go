package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// rowValue is the value of a key rows/<tag>. A field that is missing is not 0.
type rowValue struct {
	formatted

	MaxID       *int64          `json:"max_id,string"`
	Step        *int64          `json:"step"`
	Description string          `json:"description,omitempty"`
	UpdateTime  time.Time       `json:"update_time"`       // by the clock of the node that wrote the row
	Options     json.RawMessage `json:"options,omitempty"` // segment.Options
}

// The fields of a row and of its options that this version knows.
var (
	rowFields    = []string{"format", "max_id", "step", "description", "update_time", "options"}
	optionFields = fieldNames(reflect.TypeFor[segment.Options]())
)

// fieldNames returns the names of a struct's fields in JSON.
func fieldNames(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// parseRow reads the row of a tag. The error is leaf.ErrInvalidRow and names the key.
func parseRow(tag, key string, text []byte) (row segment.Row, err error) {
	var v rowValue
	err = parse(key, text, &v)
	if err == nil && (v.MaxID == nil || v.Step == nil) {
		err = unreadable(key, text, errors.New("it has no max_id or no step"))
	}
	var options segment.Options
	if err == nil && v.Options != nil {
		if wrong := json.Unmarshal(v.Options, &options); wrong != nil {
			err = unreadable(key, text, fmt.Errorf("its options: %w", wrong))
		}
	}
	if err != nil {
		return row, fmt.Errorf("%w: %w", leaf.ErrInvalidRow, err)
	}
	return segment.Row{Tag: tag, MaxID: *v.MaxID, Step: *v.Step, Description: v.Description, UpdateTime: v.UpdateTime, Options: options}, nil
}

// rowText returns a row as it is stored in place of old.
func rowText(old string, row segment.Row) string {
	v := rowValue{MaxID: &row.MaxID, Step: &row.Step, Description: row.Description, UpdateTime: row.UpdateTime}
	if options := encodeOver(string(fieldsOf(old)["options"]), row.Options, optionFields...); options != "{}" {
		v.Options = json.RawMessage(options)
	}
	return encodeOver(old, v, rowFields...)
}

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
