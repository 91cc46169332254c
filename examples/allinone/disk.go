package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/diegosdk/diego/examples/allinone/account"
	"github.com/diegosdk/diego/internal/daemon"
)

const (
	// scarce is the room in bytes below which the disk of the data directory
	// counts as full: a commit or the start of a container may need that much.
	// enough is the room with which a full disk no longer counts as full. It is
	// more than scarce, so that a disk at the limit is not reported again and
	// again.
	scarce = 256 << 10
	enough = 1 << 20
	// lookEvery is the time between two looks at the disk.
	lookEvery = 5 * time.Second
)

// watchDisk writes a line to out when nothing can be kept in the data directory
// any more, and one when that is over. The errors that a full disk causes are in
// the log, which is on that disk. It returns when ctx has ended.
func watchDisk(ctx context.Context, data *daemon.Dir, out io.Writer) {
	d := disk{dir: data.In(), keep: func(bytes int) error { return keep(data, bytes) }}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if text := d.look(); text != "" {
			fmt.Fprintln(out, account.Line{At: time.Now(), Subject: "the disk", Text: text})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// A disk is the one that the data directory is on.
type disk struct {
	dir  string
	keep func(bytes int) error // fails if there is no room for so many
	full bool                  // as reported last
}

// look returns what has changed since the last look, or "".
func (d *disk) look() string {
	room := scarce
	if d.full {
		room = enough
	}
	err := d.keep(room)
	switch full := err != nil; {
	case full == d.full:
		return ""
	case full:
		d.full = true
		return fmt.Sprintf("nothing can be kept in %s: %v; what runs goes on, but changes cannot be recorded and nothing new starts. "+
			"Free space there, or let this process write there; then all goes on by itself", d.dir, err)
	default:
		d.full = false
		return fmt.Sprintf("there is room in %s again; all goes on", d.dir)
	}
}

// keep writes a file into the directory and removes it. To ask for free space
// would miss quotas, limits on the number of files, and disks that only read.
func keep(data *daemon.Dir, bytes int) error {
	file, err := data.Create("room")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, bytes))
	return errors.Join(err, file.Close(), os.Remove(file.Name()))
}
