//go:build unix

package main

import "syscall"

// apart lets a process outlive the one that starts it, and its terminal.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// become replaces this process by another program. It returns only if that fails.
func become(program string, command, environ []string) error {
	return syscall.Exec(program, command, environ)
}
