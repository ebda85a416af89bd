package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"

	"github.com/leaf-idgen/leaf/idlog"
)

// secondOpinion gives all IDs of the run to the checker of leaf verify, which has to
// count as many, and as many different ones, as the ledger did. The ledger looks at each
// ID when it is issued, and knows allowed violations; the checker knows neither.
func (l *ledger) secondOpinion() error {
	var log bytes.Buffer
	w := idlog.NewWriter(&log, idlog.Binary)
	distinct := 0
	for s, is := range l.issued {
		for _, i := range is.all {
			if err := w.Append(idlog.Record{Key: s.String(), Lo: i.ids.Lo, Hi: i.ids.Hi - 1}); err != nil {
				return err
			}
		}
		for _, page := range is.pages {
			for _, word := range page {
				distinct += bits.OnesCount64(word)
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	r, err := idlog.CheckSources(context.Background(), idlog.Options{AnyOrder: true}, idlog.Bytes("run", log.Bytes()))
	if err != nil {
		return err
	}
	if r.Total.IDs != uint64(l.count) || r.Total.Distinct != uint64(distinct) {
		return fmt.Errorf("idlog counts %d IDs, %d different ones; the ledger %d and %d", r.Total.IDs, r.Total.Distinct, l.count, distinct)
	}
	return nil
}
