//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// freePorts is the first of n free ports in a row, below those that the host gives
// to programs that ask for any.
func freePorts(t *testing.T, n uint16) uint16 {
	t.Helper()
	free := func(port uint16) bool {
		l, err := net.Listen("tcp", fmt.Sprint(":", port))
		if err == nil {
			l.Close()
		}
		return err == nil
	}
next:
	for range 100 {
		first := uint16(10_000 + rand.IntN(20_000))
		for i := range n {
			if !free(first + i) {
				continue next
			}
		}
		return first
	}
	t.Fatalf("no %d free ports in a row", n)
	return 0
}

// What a cell has a number of is used up, also by somebody who wants nothing
// else; see also the ranges of ids in ids_test.go.
func TestWhenAPoolIsEmptyTheNextContainerIsRefusedUntilOneIsDeleted(t *testing.T) {
	const room = 4
	first := freePorts(t, room)
	for _, test := range []struct {
		name string
		edit func(*Options)
		want error
		says string
	}{
		{"addresses", func(o *Options) { o.Subnet = netip.MustParsePrefix("10.223.77.0/29") }, executor.ErrUnsupported, "Options.Subnet"},
		{"ports", func(o *Options) { o.FirstPort, o.LastPort = first, first+room-1 }, executor.ErrNoPort, "widen the range"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.edit)
			spec := func() executor.ContainerSpec {
				return f.spec(func(c *executor.ContainerSpec) { c.Ports = []uint16{80} })
			}
			var all []string
			make := func() error {
				s := spec()
				_, err := f.Create(f.ctx, s)
				if err == nil {
					all = append(all, s.GUID)
				}
				return err
			}
			for i := range room {
				if err := make(); err != nil {
					t.Fatalf("container %d: %v", i, err)
				}
			}
			before := traces(t, f.Backend)
			for range room {
				if err := make(); !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("one more than there may be: %v", err)
				}
			}
			if after := traces(t, f.Backend); !slices.Equal(before, after) {
				t.Errorf("what was refused has left something: %q, before %q", after, before)
			}
			for round := range room {
				f.delete(all[0])
				all = all[1:]
				if err := make(); err != nil {
					t.Fatal(fmt.Sprintf("in round %d, after one was deleted: ", round), err)
				}
			}
			if exit := f.as("nobody", all[0], "exit 3").end(); exit.Status != 3 {
				t.Errorf("one of those that were there ended with %+v", exit)
			}
		})
	}
}
