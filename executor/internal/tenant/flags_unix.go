//go:build unix

package tenant

import "golang.org/x/sys/unix"

// NoFollow is the flag of Open that follows no link.
const NoFollow = unix.O_NOFOLLOW

// harmless are the flags of everything that is opened: it does not wait for the
// other end of a pipe, and gives this process no controlling terminal.
const harmless = unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_CLOEXEC
