//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// loops are the loop devices of a host, which all of its processes share.
type loops interface {
	// free returns the number of a device that no file is attached to. Somebody
	// may hold it all the same.
	free() (int, error)
	// add makes the device with a number. One that is there is no error.
	add(n int) error
	// attach makes a file the device with a number. It is unix.EBUSY if somebody
	// has the device.
	attach(file *os.File, n int) (*os.File, error)
}

// maxHeldLoops is how many devices attach finds held before it gives up.
const maxHeldLoops = 256

// attach makes a file a block device, which ends by itself when nothing uses
// it any more, also if this process is killed. The device that the kernel calls
// free may have gone to somebody else meanwhile, and the kernel calls another one
// free then. If somebody holds it without using it, the kernel names it again
// and again: those after it are tried in turn.
func attach(ctx context.Context, host loops, file *os.File) (*os.File, error) {
	held := make(map[int]bool)
	for len(held) < maxHeldLoops {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := host.free()
		if err != nil {
			return nil, fmt.Errorf("no loop device is free: %w; each container with a disk limit takes one: see losetup --list", err)
		}
		if held[n] {
			for held[n] {
				n++
			}
			if err := host.add(n); err != nil {
				return nil, fmt.Errorf("no loop device is free, and another cannot be made: %w; each container with a disk limit takes one: see losetup --list", err)
			}
		}
		loop, err := host.attach(file, n)
		switch {
		case err == nil:
			return loop, nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w; the kernel has this device: make it visible with a devtmpfs at /dev, or with mknod", err)
		case !errors.Is(err, unix.EBUSY):
			return nil, err
		}
		held[n] = true
	}
	return nil, fmt.Errorf("no loop device is free: somebody holds %d of them that have no file; find out who with lsof /dev/loop*", len(held))
}

// kernelLoops are the real ones.
type kernelLoops struct{}

func (kernelLoops) free() (int, error) {
	return control("LOOP_CTL_GET_FREE", unix.LOOP_CTL_GET_FREE, 0)
}

func (kernelLoops) add(n int) error {
	_, err := control("LOOP_CTL_ADD", unix.LOOP_CTL_ADD, n)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// control asks the driver for something that concerns all devices.
func control(name string, request uint, argument int) (int, error) {
	f, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(request), uintptr(argument))
	if errno != 0 {
		return 0, os.NewSyscallError(name, errno)
	}
	return int(n), nil
}

func (kernelLoops) attach(file *os.File, n int) (*os.File, error) {
	loop, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	if err := unix.IoctlLoopConfigure(int(loop.Fd()), &config); err != nil {
		loop.Close()
		return nil, os.NewSyscallError("LOOP_CONFIGURE", err)
	}
	return loop, nil
}
