//go:build !linux

package server

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}

// Without /proc only the server itself is seen: freezing PostgreSQL freezes its
// postmaster, and killing it leaves its sessions to notice.
func children(int) []int { return nil }
func stopped(int) bool   { return true }
func gone(int) bool      { return true }
