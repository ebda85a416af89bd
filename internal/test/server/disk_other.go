//go:build !linux

package server

func mountTmpfs(string, int64) error { return ErrNoMount }

func unmountBelow(string) error { return nil }
