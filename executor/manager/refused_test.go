//go:build unix

package manager_test

import (
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// Plain processes honour few fields. Each of the others is refused by its name,
// and nothing of the work begins.
func TestAFieldThatPlainProcessesCannotHonourIsRefusedByName(t *testing.T) {
	h := newHost(t)
	for field, edit := range map[string]func(*manager.Work){
		"root_fs":    func(w *manager.Work) { w.RootFS = "preloaded:linux" },
		"cpu_weight": func(w *manager.Work) { w.CPUWeight = 50 },
		"privileged": func(w *manager.Work) { w.Privileged = true },
		"egress_rules": func(w *manager.Work) {
			w.EgressRules = []executor.EgressRule{{Protocol: executor.ProtocolAll, Destinations: []string{"10.0.0.1"}}}
		},
		"network": func(w *manager.Work) {
			w.Network = &executor.Network{Properties: map[string]string{"policy": "p1"}}
		},
		"certificate_properties": func(w *manager.Work) { w.CertificateProperties = &executor.CertificateConfig{} },
		"image_username":         func(w *manager.Work) { w.ImageUsername, w.ImagePassword = "u", "secret" },
	} {
		w := manager.Work{RunInfo: executor.RunInfo{RootFS: "host:", Action: sh("true")}}
		edit(&w)
		h.launch(field, w)
		r := h.await(field, executor.Completed).RunResult
		if !r.Failed || !r.Retryable || !strings.Contains(r.FailureReason, "not supported here: "+field+" (") || strings.Contains(r.FailureReason, "secret") {
			t.Errorf("%s: %+v", field, r)
		}
		h.remove(field)
	}
}
