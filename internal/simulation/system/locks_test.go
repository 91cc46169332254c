package system_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestALockerUsesTheLocksOfItsCertificateOnly(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	client := func(units ...string) *httpapi.RemoteBBS {
		c, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, "me", units...)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const locker, operator, consumer = "diego-locker", "diego-operator", "diego-consumer"
	for _, c := range []struct {
		name, lock string
		units      []string
		want       string // what the refusal says, or empty
		lists      bool
	}{
		{"its own", "router", []string{locker, "diego-lock:router"}, "", false},
		{"one of two", "b", []string{locker, "diego-lock:a", "diego-lock:b"}, "", false},
		{"another's", "other", []string{locker, "diego-lock:router"}, `the lock is "other", and the role locker uses only the locks of its certificate, ["router"]: one with the organizational unit diego-lock:other is wanted`, false},
		{"one below its own", "router/zone-1", []string{locker, "diego-lock:router"}, `the lock is "router/zone-1"`, false},
		{"none", "router", []string{locker, "diego-lock:"}, `its certificate, []`, false},
		{"a lock without the role", "router", []string{consumer, "diego-lock:router"}, "diego-locker, diego-operator is wanted", false},
		{"a consumer who holds locks", "other", []string{consumer, locker, "diego-lock:router"}, `the lock is "other"`, false},
		{"an operator", "other", []string{operator}, "", true},
		{"an operator who holds locks", "other", []string{operator, locker, "diego-lock:router"}, "", true},
	} {
		b, ctx := client(c.units...), t.Context()
		l, acquire := b.AcquireLock(ctx, bbs.Lock{Name: c.lock, Owner: "me"}, time.Minute)
		l.Name, l.Owner = c.lock, "me" // also if there is none
		_, renew := b.RenewLock(ctx, l, time.Minute)
		list, read := b.Locks(ctx, c.lock)
		release := b.ReleaseLock(ctx, l)
		for call, err := range map[string]error{"acquire": acquire, "renew": renew, "read": read, "release": release} {
			if (c.want == "") != (err == nil) || err != nil && (!errors.Is(err, httpapi.ErrForbidden) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, %s: %v, want %q", c.name, call, err, c.want)
			}
		}
		if c.want == "" && (len(list) != 1 || list[0].Epoch != l.Epoch) {
			t.Errorf("%s: the lock %+v, and the list is %+v", c.name, l, list)
		}
		if _, err := b.Locks(ctx, ""); c.lists != (err == nil) || err != nil && !errors.Is(err, httpapi.ErrForbidden) {
			t.Errorf("%s, all: %v", c.name, err)
		}
	}
}

func TestALockOutlivesTheLeaderOfTheBBS(t *testing.T) {
	store := memstore.New(nil)
	serve := func(owner string) (*diego.ControlPlane, *httptest.Server) {
		plane, err := diego.New(diego.Options{Store: store, Dial: memcell.Fleet{}.Dial, Owner: owner})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: plane.BBS, Locks: bbs.NewLocks(store), AllowPlain: true})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		if err := plane.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		return plane, server
	}
	leader, first := serve("bbs-1")
	standby, second := serve("bbs-2")
	client := func() *httpapi.RemoteBBS {
		c, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{first.URL, second.URL}, AllowPlain: true, Pause: time.Millisecond, Patience: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	holder, other := client(), client()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	held, began, turn := make(chan bbs.Lock, 2), make(chan struct{}), 0
	work := func(ctx context.Context, l bbs.Lock) error {
		held <- l
		if turn++; turn > 1 {
			return nil
		}
		close(began)
		before, err := other.Locks(ctx, "router")
		if err != nil || len(before) != 1 {
			return errors.Join(err, errors.New("nothing is held"))
		}
		// The leader goes. The standby leads, and answers about locks in any case.
		first.CloseClientConnections()
		first.Close()
		if err := leader.Leadership.Resign(ctx); err != nil {
			return err
		}
		if err := standby.Tick(ctx); err != nil {
			return err
		}
		for ctx.Err() == nil { // until it was renewed at the other one
			now, err := other.Locks(ctx, "router")
			if err != nil || len(now) != 1 || now[0].Epoch != l.Epoch {
				t.Errorf("there are %+v, %v", now, err)
				return nil
			}
			if now[0].ExpiresAt.After(before[0].ExpiresAt) {
				_, err := other.AcquireLock(ctx, bbs.Lock{Name: "router", Owner: "somebody"}, time.Minute)
				if heldError := (*storage.HeldError)(nil); !errors.As(err, &heldError) || heldError.Lease.Epoch != l.Epoch {
					t.Errorf("somebody else gets %v", err)
				}
				return nil
			}
		}
		return context.Cause(ctx)
	}
	done := make(chan error, 2)
	hold := func(c *httpapi.RemoteBBS) {
		done <- bbs.HoldLock(ctx, bbs.HoldOptions{Locks: c, Name: "router", Owner: "me", TTL: 6 * time.Second}, work)
	}
	go hold(holder)
	<-began
	go hold(other)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if a, b := <-held, <-held; a.Epoch >= b.Epoch {
		t.Errorf("the epochs are %d and %d", a.Epoch, b.Epoch)
	}
}

func TestTheLossOfALockIsTheSameErrorOverHTTP(t *testing.T) {
	locks := bbs.NewLocks(memstore.New(nil))
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{Locks: locks, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	remote, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]bbs.LocksAPI{"here": locks, "over HTTP": remote} {
		l, err := k.AcquireLock(t.Context(), bbs.Lock{Name: "router", Owner: "me"}, time.Minute)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := k.AcquireLock(t.Context(), bbs.Lock{Name: "router", Owner: "me"}, time.Minute); err != nil {
			t.Fatal(name, err)
		}
		var lost *bbs.LockLostError
		if _, err := k.RenewLock(t.Context(), l, time.Minute); !errors.As(err, &lost) || !errors.Is(err, bbs.ErrLockLost) || *lost != (bbs.LockLostError{Name: "router", Epoch: l.Epoch}) {
			t.Errorf("%s: %v", name, err)
		}
		if err := k.ReleaseLock(t.Context(), l); !errors.Is(err, bbs.ErrLockLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
