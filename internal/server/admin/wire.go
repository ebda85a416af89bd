package admin

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// read returns the request of type t that r holds, in the form that manage.Operation
// describes.
func read(r *http.Request, t reflect.Type) (any, error) {
	if t == reflect.TypeFor[manage.Drain]() {
		delay, err := drainDelay(r)
		if err != nil {
			return nil, err
		}
		return manage.Drain{Delay: delay}, manage.Validate(manage.Drain{Delay: delay})
	}
	request, query, body := reflect.New(t), r.URL.Query(), false
	for i := range t.NumField() {
		name, ok := t.Field(i).Tag.Lookup("query")
		if !ok {
			body = true
			continue
		}
		if err := readField(request.Elem().Field(i), t.Field(i).Tag, name, query[name]); err != nil {
			return nil, err
		}
	}
	if body {
		if err := decode(r.Body, request.Interface()); err != nil {
			return nil, err
		}
	}
	return request.Elem().Interface(), manage.Validate(request.Elem().Interface())
}

func readField(field reflect.Value, tag reflect.StructTag, name string, values []string) error {
	if _, once := tag.Lookup("once"); once && len(values) != 1 {
		return leaf.BadField(name, strings.Join(values, ", "), "must be given once")
	}
	text := strings.Join(values[:min(1, len(values))], "")
	if field.Kind() == reflect.String {
		field.SetString(text)
		return nil
	}
	n, err := strconv.ParseInt(cmp.Or(text, tag.Get("default")), 10, 64)
	if err != nil {
		return leaf.BadField(name, text, tag.Get("must"))
	}
	field.SetInt(n)
	return nil
}

// write returns the parameters of a request, and whether it has a body.
func write(request any) (query url.Values, body bool) {
	query = url.Values{}
	if d, ok := request.(manage.Drain); ok {
		if d.Delay >= 0 {
			query.Set("delay", d.Delay.String())
		}
		return query, false
	}
	v := reflect.ValueOf(request)
	for i := range v.NumField() {
		switch name, ok := v.Type().Field(i).Tag.Lookup("query"); {
		case !ok:
			body = true
		case v.Field(i).Kind() == reflect.String:
			query.Set(name, v.Field(i).String())
		default:
			query.Set(name, strconv.FormatInt(v.Field(i).Int(), 10))
		}
	}
	return query, body
}

// drainDelay returns the delay that r asks for, below 0 if it asks for none. It refuses what
// it does not understand, so that a misspelled delay does not become none.
func drainDelay(r *http.Request) (time.Duration, error) {
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return 0, leaf.BadField("body", "...", "must be empty; the delay is ?delay=DURATION")
	}
	query := r.URL.Query()
	for name, values := range query {
		if name != "delay" || len(values) > 1 {
			return 0, leaf.BadField("parameter", name, "is not known or there twice; the only one is delay")
		}
	}
	if !query.Has("delay") {
		return -1, nil
	}
	text := query.Get("delay")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, leaf.BadField("delay", text, "must be a duration from 0s to 10m")
	}
	return d, nil
}
