package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/ownership"
)

// tokenFile is an auth.Store in a file: a line for each token, with its name, the digest of its
// secret and its roles. Lines that begin with # are comments. It is for nodes whose
// configuration is made by a tool; of two commands that write it at once, one may undo the other.
type tokenFile struct{ path string }

var _ auth.Store = tokenFile{}

// maxTokenFile bounds what is read.
const maxTokenFile = 64 << 20

// NamedTokens implements auth.Store. A line that is wrong spoils the file, because the one who
// wrote it must hear of it; the last tokens stay in force.
func (f tokenFile) NamedTokens(context.Context) (all []auth.Token, err error) {
	info, err := os.Stat(f.path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: file of named tokens: %w", leaf.ErrNotReady, err)
	case info.Size() > maxTokenFile:
		return nil, fmt.Errorf("%w: file of named tokens: %s is larger than %d bytes", leaf.ErrNotReady, f.path, maxTokenFile)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("%w: file of named tokens: %w", leaf.ErrNotReady, err)
	}
	names := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		t := auth.Token{Name: words[0], Created: info.ModTime().UTC()}
		if len(words) > 1 {
			t.Digest = words[1]
			t.Roles, err = auth.ParseRoles(words[2:])
		}
		if err = errors.Join(err, t.Validate()); err != nil {
			return nil, fmt.Errorf("file of named tokens: %s, line %d: must be NAME DIGEST ROLES: %w", f.path, i+1, err)
		}
		if names[t.Name] || len(all) >= auth.MaxTokens {
			return nil, fmt.Errorf("file of named tokens: %s, line %d: %w", f.path, i+1, leaf.BadField("name", t.Name, fmt.Sprintf("must be there once, among at most %d", auth.MaxTokens)))
		}
		names[t.Name] = true
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b auth.Token) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// CreateToken implements auth.Store.
func (f tokenFile) CreateToken(ctx context.Context, t auth.Token) error {
	if err := t.Validate(); err != nil {
		return err
	}
	all, err := f.NamedTokens(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, other := range all {
		if other.Name == t.Name {
			return auth.ErrTokenExists(t.Name)
		}
	}
	if len(all) >= auth.MaxTokens {
		return auth.ErrTooManyTokens()
	}
	line := strings.Join(append([]string{t.Name, t.Digest}, t.Roles.Words()...), " ") + "\n"
	return f.rewrite(func(text []byte) []byte {
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		return append(text, line...)
	})
}

// RevokeToken implements auth.Store.
func (f tokenFile) RevokeToken(_ context.Context, name string) error {
	if err := auth.CheckName(name); err != nil {
		return err
	}
	found := false
	err := f.rewrite(func(text []byte) []byte {
		var kept []byte
		for line := range bytes.Lines(text) {
			if words := bytes.Fields(line); len(words) > 0 && string(words[0]) == name {
				found = true
				continue
			}
			kept = append(kept, line...)
		}
		return kept
	})
	if err == nil && !found {
		return auth.ErrNoToken(name)
	}
	return err
}

// rewrite puts another content in the place of the file at once, so that no node reads half of
// it. The file keeps its mode and its owner; a new one is for its folder's owner alone.
func (f tokenFile) rewrite(edit func(text []byte) []byte) error {
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: file of named tokens: %w", leaf.ErrNotReady, err)
	}
	other, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*") // with mode 0600
	if err != nil {
		return fmt.Errorf("%w: file of named tokens: %w", leaf.ErrNotReady, err)
	}
	like, err := os.Stat(f.path)
	if err == nil {
		err = other.Chmod(like.Mode().Perm())
	} else {
		like, err = os.Stat(filepath.Dir(f.path))
	}
	if err == nil {
		ownership.Inherit(other, like)
		_, err = other.Write(edit(text))
	}
	err = errors.Join(err, other.Sync(), other.Close())
	if err == nil {
		err = os.Rename(other.Name(), f.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: file of named tokens: %w", leaf.ErrNotReady, err), os.Remove(other.Name()))
	}
	return nil
}
