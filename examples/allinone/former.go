package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A formerCell was a cell of an earlier run with more cells. After a kill -9 its
// processes may still run, and its records say so.
type formerCell struct {
	id, dir string
	// ended is how many containers it had, and err why some may be left.
	ended int
	err   error
}

// findFormer finds the cells of a data directory above a number, and ends what
// runs there.
func findFormer(ctx context.Context, data string, cells int) (list []formerCell, err error) {
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		digits, is := strings.CutPrefix(e.Name(), "cell-")
		if n, err := strconv.Atoi(digits); !is || !e.IsDir() || err != nil || n <= cells || strconv.Itoa(n) != digits {
			continue
		}
		c := formerCell{id: e.Name(), dir: filepath.Join(data, e.Name())}
		c.ended, c.err = daemon.ClearBackends(ctx, daemon.BackendOptions{Dir: c.dir}, "")
		list = append(list, c)
	}
	return list, ctx.Err()
}

// introduce says what became of the cell, if it had anything.
func (c *formerCell) introduce(out io.Writer) {
	if c.ended > 0 {
		fmt.Fprintf(out, "%-12snot one of these cells any more; what an earlier run had left there was ended (containers: %d)\n", c.id, c.ended)
	}
	if c.err != nil {
		fmt.Fprintf(out, "%-12snot one of these cells any more; what an earlier run had left there could not be ended: %v\n", c.id, c.err)
	}
}

// leave reports that everything recorded on the cell is gone, so that it starts
// elsewhere, and ends the cell's presence. Where something may still run it
// reports nothing.
func (c *formerCell) leave(ctx context.Context, b *bbs.BBS, p cellPlan) error {
	if c.err != nil {
		return nil
	}
	known, err := c.known(ctx, b)
	if err != nil || !known {
		return err
	}
	empty, err := openCell(ctx, p.of(c.id, c.dir, daemon.ProcessBackend))
	if err != nil {
		return err
	}
	empty.tick(ctx)
	err = empty.announcer.Leave(ctx)
	_, closeErr := empty.close(ctx)
	return errors.Join(err, closeErr)
}

// known reports whether a record names the cell, or it is present.
func (c *formerCell) known(ctx context.Context, b *bbs.BBS) (bool, error) {
	cells, err := b.Cells(ctx)
	if err != nil || slices.ContainsFunc(cells, func(p bbs.CellPresence) bool { return p.CellID == c.id }) {
		return true, err
	}
	for _, err := range b.ActualLRPs(ctx, storage.ActualLRPFilter{CellIDs: []string{c.id}}) {
		return true, err
	}
	for _, err := range b.Tasks(ctx, storage.TaskFilter{CellIDs: []string{c.id}, States: []task.State{task.Running}, Bare: true}) {
		return true, err
	}
	return false, nil
}
