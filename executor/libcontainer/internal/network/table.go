//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	nfnetlink "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// A table is one table of nftables that the kernel removes when the daemon
// dies, however that happens: it belongs to a socket of the daemon's. What it
// maps would otherwise black-hole ports that others have by then.
//
// Kernels before 5.12 let nobody own a table. There it is found by the next
// backend of the host, with any Dir, because nobody claims its name any more.
type table struct {
	nftables.Table
	mu     sync.Mutex
	conn   *nftables.Conn
	socket *nfnetlink.Conn // conn's; nil once closed
	claim  int             // where nobody owns tables: a socket that is named after it; or -1
}

// tablePrefix begins the names of all tables; what follows is the Backend's id.
const tablePrefix = "diego-"

// NFT_TABLE_F_OWNER, which package unix does not have.
const tableOwned = 2

// newTable makes an empty table in place of what a dead daemon has left.
func newTable(id string, owned bool) (*table, error) {
	t := &table{Table: nftables.Table{Name: tablePrefix + id, Family: nftables.TableFamilyIPv4}, claim: -1}
	var err error
	t.conn, err = nftables.New(nftables.AsLasting(), nftables.WithSockOptions(func(s *nfnetlink.Conn) error {
		t.socket = s
		return errors.Join(s.SetReadBuffer(transactionBytes), s.SetWriteBuffer(transactionBytes))
	}))
	if err != nil {
		return nil, err
	}
	if err := t.make(owned); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// transactionBytes bounds one transaction, and the kernel's answers to it: one
// to each rule. By default some hundred rules would be too many.
const transactionBytes = 16 << 20

func (t *table) make(owned bool) error {
	if owned {
		err := t.add(tableOwned)
		if errors.Is(err, unix.EPERM) {
			return fmt.Errorf("%w: does another daemon run with the same Dir?", err)
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP) {
			return err
		}
	}
	var err error
	if t.claim, err = claimTable(t.Name, claimPatience); err != nil {
		return err
	}
	if err := removeOrphans(t.Name); err != nil {
		return err
	}
	if err := removeTable(t.Name); err != nil {
		return err
	}
	return t.add(0)
}

// add sends what the library cannot: a table with flags.
func (t *table) add(flags uint32) error {
	header := func(family, resource byte) []byte { return []byte{family, unix.NFNETLINK_V0, 0, resource} }
	attributes, err := nfnetlink.MarshalAttributes([]nfnetlink.Attribute{
		{Type: unix.NFTA_TABLE_NAME, Data: []byte(t.Name + "\x00")},
		{Type: unix.NFTA_TABLE_FLAGS, Data: binaryutil.BigEndian.PutUint32(flags)},
	})
	if err != nil {
		return err
	}
	_, err = t.socket.SendMessages([]nfnetlink.Message{
		{Header: nfnetlink.Header{Type: unix.NFNL_MSG_BATCH_BEGIN, Flags: nfnetlink.Request}, Data: header(0, unix.NFNL_SUBSYS_NFTABLES)},
		{
			Header: nfnetlink.Header{
				Type:  unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE,
				Flags: nfnetlink.Request | nfnetlink.Acknowledge | nfnetlink.Create | nfnetlink.Excl,
			},
			Data: append(header(byte(t.Family), 0), attributes...),
		},
		{Header: nfnetlink.Header{Type: unix.NFNL_MSG_BATCH_END, Flags: nfnetlink.Request}, Data: header(0, unix.NFNL_SUBSYS_NFTABLES)},
	})
	if err == nil {
		_, err = t.socket.Receive()
	}
	return err
}

// change makes one transaction of what do adds to the connection.
func (t *table) change(do func(*nftables.Conn) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.socket == nil {
		return os.ErrClosed
	}
	err := do(t.conn)
	if err == nil {
		err = t.conn.Flush()
	}
	if err != nil {
		err = errors.Join(err, t.drain())
	}
	return err
}

// drain takes the answers that a failed transaction has left in the socket,
// which the next one would take for its own.
func (t *table) drain() error {
	raw, err := t.socket.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		for err := error(nil); err == nil || errors.Is(err, unix.ENOBUFS); {
			_, _, err = unix.Recvfrom(int(fd), nil, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		}
	})
}

// close removes the table. It may be called twice.
func (t *table) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.socket == nil {
		return nil
	}
	t.socket = nil
	err := t.conn.CloseLasting() // and with it the table, if it is owned
	if t.claim >= 0 {
		err = errors.Join(err, removeTable(t.Name))
		unix.Close(t.claim)
	}
	return err
}

// claimTable binds a socket that is named after a table: all backends of the
// network namespace see it, and it is gone with its process. It waits for one
// that only looks whether the table is an orphan.
func claimTable(name string, patience time.Duration) (int, error) {
	const pause = time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, os.NewSyscallError("socket", err)
		}
		if err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err == nil {
			return fd, nil
		}
		unix.Close(fd)
		if waited >= patience {
			return -1, fmt.Errorf("the name %s is taken: %w: does another daemon run with the same Dir?", name, err)
		}
		time.Sleep(pause)
	}
}

// claimPatience is far more than it takes to remove a table.
const claimPatience = 2 * time.Second

// removeOrphans removes the tables that nobody claims any more, except but.
func removeOrphans(but string) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return err
	}
	for _, t := range tables {
		id, ours := strings.CutPrefix(t.Name, tablePrefix)
		if raw, err := hex.DecodeString(id); !ours || t.Name == but || err != nil || len(raw) != IDBytes {
			continue
		}
		claim, err := claimTable(t.Name, 0)
		if err != nil {
			continue // it is somebody's
		}
		err = removeTable(t.Name)
		unix.Close(claim)
		if err != nil && !errors.Is(err, unix.EPERM) { // which is owned
			return err
		}
	}
	return nil
}

// removeTable removes a table if it is there.
func removeTable(name string) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.DelTable(&nftables.Table{Name: name, Family: nftables.TableFamilyIPv4})
	if err := c.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
