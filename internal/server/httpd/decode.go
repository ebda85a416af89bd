package httpd

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Decoded is an ID of snowflake mode, taken apart.
type Decoded struct {
	UnixMilli     int64 // the moment, in ms since 1970
	Worker        int64
	Sequence      int64
	Datacenter    int64
	HasDatacenter bool // the layout has such a field
}

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
	id, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return leaf.BadField("snowflakeId", values[0], "must be a decimal number from 0 to 2^63-1")
	}
	d, err := a.decode(int64(id))
	if err != nil {
		return err
	}
	fields := map[string]string{
		"timestamp":  strconv.FormatInt(d.UnixMilli, 10) + "(" + time.UnixMilli(d.UnixMilli).Format(javaTime) + ")",
		"workerId":   strconv.FormatInt(d.Worker, 10),
		"sequenceId": strconv.FormatInt(d.Sequence, 10),
	}
	if d.HasDatacenter {
		fields["datacenterId"] = strconv.FormatInt(d.Datacenter, 10)
	}
	return writeJSON(w, http.StatusOK, fields)
}
