package task

import "testing"

func BenchmarkStep(b *testing.B) {
	records := records(b)
	for _, bench := range []struct {
		name    string
		record  *Task
		command Command
	}{
		{"start", records[Pending], startAlpha},
		{"start again", records[Running], startAlpha},
		{"complete", records[Running], completeAlpha},
		{"reject", records[Running], rejectAlpha},
		{"cancel", records[Running], Cancel{}},
		{"resolve", records[Completed], Resolve{}},
		{"delete", records[Resolving], Delete{}},
		{"refuse", records[Completed], startAlpha},
		{"desire", nil, desire()},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Step(bench.record, bench.command, epoch, Policy{})
			}
		})
	}
}
