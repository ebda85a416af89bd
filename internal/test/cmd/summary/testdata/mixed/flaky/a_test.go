package flaky

import (
	"os"
	"testing"
)

func TestPass(*testing.T) {}

// TestOnce fails until the file that FLAKY names is there.
func TestOnce(t *testing.T) {
	file := os.Getenv("FLAKY")
	t.Run("sub", func(t *testing.T) {
		if _, err := os.Stat(file); err != nil {
			os.WriteFile(file, nil, 0o600)
			t.Error(os.Getenv("FLAKY_TEXT"))
		}
	})
}
