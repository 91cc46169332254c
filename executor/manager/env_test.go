package manager_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// A sharingBackend has no network of its own for its containers.
type sharingBackend struct{ *scripted.Backend }

func (b *sharingBackend) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	e, err := b.Backend.Create(ctx, spec)
	e.SharesHostNetwork = true
	return e, err
}

func TestAProcessLearnsWhoAndWhereItIs(t *testing.T) {
	variables := []string{"PORT", "INSTANCE_GUID", "INSTANCE_INDEX", "CF_INSTANCE_GUID", "CF_INSTANCE_INDEX", "CF_INSTANCE_IP", "CF_INSTANCE_INTERNAL_IP",
		"CF_INSTANCE_PORT", "CF_INSTANCE_ADDR", "CF_INSTANCE_PORTS", "CF_SYSTEM_CERT_PATH", "A", "B"}
	own := []executor.EnvVar{{Name: "B", Value: "process"}, {Name: "INSTANCE_INDEX", Value: "7"}}
	common := []executor.EnvVar{{Name: "A", Value: "container"}, {Name: "B", Value: "container"}}
	port := executor.EnvVar{Name: "PORT", Value: "1234"}
	tags := map[string]string{executor.TagInstanceGUID: "instance-1", executor.TagProcessIndex: "2"}
	tests := []struct {
		name   string
		env    []executor.EnvVar
		tags   map[string]string
		ports  []uint16
		shares bool
		want   string
	}{
		{"an instance with two ports", common, tags, []uint16{8080, 9090}, false,
			`8080|instance-1|2|instance-1|2|127.0.0.1|10.255.0.1|61001|127.0.0.1:61001|[{"external":61001,"internal":8080},{"external":61002,"internal":9090}]|/certs|container|process`},
		{"a task without ports", common, nil, nil, false, `|c|7|c||127.0.0.1|10.255.0.1|||[]|/certs|container|process`},
		{"a port that the consumer sets", append(common, port), tags, []uint16{8080}, false,
			`1234|instance-1|2|instance-1|2|127.0.0.1|10.255.0.1|61001|127.0.0.1:61001|[{"external":61001,"internal":8080}]|/certs|container|process`},
		{"but where ports are the host's no other can work", append(common, port), tags, []uint16{8080}, true,
			`61001|instance-1|2|instance-1|2|127.0.0.1|10.255.0.1|61001|127.0.0.1:61001|[{"external":61001,"internal":8080}]|/certs|container|process`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCell(t, func(o *manager.Options) {
				o.Dir, o.TrustedCertificates = t.TempDir(), "/etc/ssl/certs"
				if test.shares {
					o.Backend = &sharingBackend{o.Backend.(*scripted.Backend)}
				}
			})
			action := do("print $" + strings.Join(variables, "|$"))
			action.Run.Env = own
			c.launch("c", with(work(action), func(w *manager.Work) {
				w.Env, w.Tags, w.Ports, w.TrustedSystemCertificatesPath = test.env, test.tags, test.ports, "/certs"
			}))
			c.advance(time.Second)
			r, err := c.Log(context.Background(), "c", manager.Stdout, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			name := func(values string) map[string]string {
				m := map[string]string{}
				for i, v := range strings.Split(strings.TrimSuffix(values, "\n"), "|") {
					m[variables[i]] = v
				}
				return m
			}
			if diff := cmp.Diff(name(test.want), name(string(text))); diff != "" {
				t.Errorf("the environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALogRateHoldsForTheContainerAndZeroKeepsNothing(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
	streams := []manager.Stream{manager.Stdout, manager.Stderr, manager.Health}
	for limit, want := range map[int64][3]string{
		0:  {"", "", ""},
		15: {"some words\n", "more\n[7 bytes dropped: more than 15 bytes per second]\n", "I am fine\n"},
		-1: {"some words\n", "more words\n", "I am fine\n"},
	} {
		c.launch("c", with(work(do("print some words", "warn more words", "wait forever")), func(w *manager.Work) {
			w.LogRateLimit = &executor.LogRateLimit{BytesPerSecond: limit}
			monitor := do("print I am fine")
			w.Monitor = &monitor
		}))
		c.advance(time.Second)
		for i, s := range streams {
			r, err := c.Log(context.Background(), "c", s, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(r); string(text) != want[i] || err != nil {
				t.Errorf("of %s remains %q with a limit of %d, want %q, %v", s, text, limit, want[i], err)
			}
			r.Close()
		}
		c.Delete("c")
		c.advance(0)
	}
	if _, err := c.Log(context.Background(), "never", manager.Stdout, 0, false); err == nil {
		t.Error("a container that never was has a log")
	}
	c.reserve("d")
	if _, err := c.Log(context.Background(), "d", manager.Stdout, 0, false); err == nil {
		t.Error("a reservation has a log")
	}
}
