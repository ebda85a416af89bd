package snowflake_test

import (
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf/snowflake"
)

// FuzzID: every number is an ID of a layout, which gives the same number again, or is
// refused; none is both.
func FuzzID(f *testing.F) {
	for _, layout := range append(snowflake.Presets(), "time=40,worker=3,sequence=5,epoch=0") {
		for _, id := range []int64{0, 1, -1, 1<<63 - 1, -1 << 63, 1 << 53, 1<<53 - 1, 1541815603606036480} {
			f.Add(layout, id)
		}
	}
	f.Fuzz(func(t *testing.T, text string, id int64) {
		l, err := snowflake.ParseLayout(text)
		if err != nil {
			t.Skip()
		}
		fits := id >= 0 && (l.Bits() >= 63 || id < int64(1)<<l.Bits())
		p, err := l.Decode(id)
		if (err == nil) != fits || err != nil && !errors.Is(err, snowflake.ErrInvalid) {
			t.Fatalf("%s: Decode(%d) = %+v, %v", l, id, p, err)
		}
		if err != nil {
			return
		}
		if got, err := l.Encode(p); err != nil && !errors.Is(err, snowflake.ErrOverflow) || err == nil && got != id {
			t.Errorf("%s: %d is %+v, and that %d, %v", l, id, p, got, err)
		}
	})
}
