package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// TestTokenFileBelongsToTheNode: a command that root runs writes the file of named tokens anew, and the node's user
// can still read it.
func TestTokenFileBelongsToTheNode(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const owner = 65534
	for name, make := range map[string]func(folder, path string) error{
		"as the file that was there": func(_, path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o640), os.Chown(path, owner, owner))
		},
		"as the folder": func(folder, _ string) error { return os.Chown(folder, owner, owner) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "tokens")
			if err := make(folder, path); err != nil {
				t.Fatal(err)
			}
			mode := os.FileMode(0o600)
			if was, err := os.Stat(path); err == nil {
				mode = was.Mode()
			}
			c := embedded(shortDir(t))
			c.Auth.Named = "file:" + path
			b, done, err := app.Open(t.Context(), c, app.Options{}, true, app.Stores)
			if err != nil {
				t.Fatal(err)
			}
			_, digest := auth.NewSecret()
			_, err = manage.Ask(t.Context(), b, manage.CreateToken{Name: "shop", Digest: digest, Roles: []string{"read"}})
			if err = errors.Join(err, done()); err != nil {
				t.Fatal(err)
			}
			is, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if of := is.Sys().(*syscall.Stat_t); of.Uid != owner || of.Gid != owner || is.Mode() != mode {
				t.Errorf("the file belongs to %d:%d with mode %v, want %d:%d and %v", of.Uid, of.Gid, is.Mode(), owner, owner, mode)
			}
		})
	}
}
