package bbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestLabelsThatAreReadTogetherTakeFewBytes(t *testing.T) {
	for name, test := range map[string]struct {
		bytes int // of the routes of each process
		parts string
	}{
		"small": {10, "[0-8]"},
		"large": {100 << 10, "[0-2 2-4 4-6 6-8]"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := New(Options{Store: memstore.New(nil)})
			if err != nil {
				t.Fatal(err)
			}
			var records []*lrp.ActualLRP
			for i := range 8 {
				guid := fmt.Sprint("process-", i)
				d := lrp.DesiredLRP{ProcessGUID: guid, Domain: "apps", Definition: lrp.Definition{RunInfo: executor.RunInfo{
					RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
				}}}
				d.Routes = lrp.Routes{
					lrp.InternalRouter: fmt.Appendf(nil, `[{"hostname":"%s.internal"}]`, guid), "http": []byte(`"` + strings.Repeat("x", test.bytes) + `"`),
				}
				if err := b.Desire(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				records = append(records, &lrp.ActualLRP{Key: lrp.Key{ProcessGUID: guid}, State: lrp.Running})
			}
			var parts []string
			err = b.inParts(t.Context(), len(records), func(i int, yield func(*lrp.ActualLRP) bool) bool {
				return yield(records[i])
			}, func(from, to int, known labels) bool {
				parts = append(parts, fmt.Sprintf("%d-%d", from, to))
				for _, r := range records[from:to] {
					if got := known.of(r); fmt.Sprint(got.InternalRoutes) != fmt.Sprintf("[{%s.internal}]", r.ProcessGUID) {
						t.Errorf("%s has the labels %v", r.ProcessGUID, got.InternalRoutes)
					}
				}
				return true
			})
			if got := fmt.Sprint(parts); got != test.parts || err != nil {
				t.Errorf("got the parts %s, %v; want %s", got, err, test.parts)
			}
		})
	}
}
