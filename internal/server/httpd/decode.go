package httpd

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
)

// javaTime is the original's "yyyy-MM-dd HH:mm:ss.SSS".
const javaTime = "2006-01-02 15:04:05.000"

// serveDecode answers as the Java server does: a map of strings, the moment with its
// text in the server's time zone. The Java server answers 200 with an errorMsg to
// what is no number, and takes apart what is no ID; here both are a 400, because a
// program that asks does not read Chinese.
func (a *api) serveDecode(w http.ResponseWriter, r *http.Request) error {
	values := r.URL.Query()["snowflakeId"]
	if len(values) != 1 {
		return leaf.BadField("snowflakeId", strings.Join(values, ","), "must be given once")
	}
	id, err := idtime.ParseID("snowflakeId", values[0])
	if err != nil {
		return err
	}
	d, err := a.times.Decode(id)
	if err != nil {
		return err
	}
	fields := map[string]string{
		"timestamp":  strconv.FormatInt(d.UnixMilli, 10) + "(" + time.UnixMilli(d.UnixMilli).Format(javaTime) + ")",
		"workerId":   strconv.FormatInt(d.Worker, 10),
		"sequenceId": strconv.FormatInt(d.Sequence, 10),
	}
	if d.Datacenter != nil {
		fields["datacenterId"] = strconv.FormatInt(*d.Datacenter, 10)
	}
	return writeJSON(w, http.StatusOK, fields)
}

// serveDecoded is serveDecode for programs.
func (a *api) serveDecoded(w http.ResponseWriter, r *http.Request) error {
	d, err := idtime.AskDecode(a.times, r.URL.Query())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, d)
}

// serveRange answers with the IDs of a time.
func (a *api) serveRange(w http.ResponseWriter, r *http.Request) error {
	ids, err := idtime.AskRange(a.times, r.URL.Query())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, ids)
}
