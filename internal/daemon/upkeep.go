package daemon

import (
	"cmp"
	"time"

	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
)

// Upkeep are the settings of a cell for durations, concurrency and how much of logs
// is kept, for embedding. Every kind of cell has them.
type Upkeep struct {
	Grace             time.Duration `name:"grace" option:"manager.Options.Grace" default:"10s" range:"1ms..24h" help:"how long a process may take to end before it is killed"`
	UnhealthyInterval time.Duration `name:"unhealthy_interval" option:"manager.Options.UnhealthyInterval" default:"500ms" range:"10ms..1h" help:"between two checks until a container is healthy or ready"`
	HealthyInterval   time.Duration `name:"healthy_interval" option:"manager.Options.HealthyInterval" default:"30s" range:"10ms..24h" help:"between two checks afterwards, unless the check says another time"`
	ReservationExpiry time.Duration `name:"reservation_expiry" option:"manager.Options.ReservationExpiry" default:"1m" range:"1s..24h" help:"how long a reserved container waits for its work"`
	ReapInterval      time.Duration `name:"reap_interval" option:"manager.Options.ReapInterval" default:"1m" range:"1s..24h" help:"between two searches for stray containers"`
	UsageInterval     time.Duration `name:"usage_interval" option:"manager.Options.UsageInterval" default:"30s" range:"100ms..24h" help:"between two measurements of what a container uses"`
	CreateWorkers     int           `name:"create_workers" option:"manager.Options.CreateWorkers" default:"0" range:"0..10000" help:"how many containers are made at a time; 0: by the processors"`
	DeleteWorkers     int           `name:"delete_workers" option:"manager.Options.DeleteWorkers" default:"32" range:"1..10000" help:"how many containers are removed at a time"`
	ProcessWorkers    int           `name:"process_workers" option:"manager.Options.ProcessWorkers" default:"64" range:"1..10000" help:"how many starts, signals and checks there are at a time"`
	Downloads         int           `name:"downloads" option:"manager.Options.Downloads" default:"5" range:"1..10000" help:"how many downloads there are at a time"`
	Uploads           int           `name:"uploads" option:"manager.Options.Uploads" default:"5" range:"1..10000" help:"how many uploads there are at a time"`
	CacheBytes        int64         `name:"cache_bytes" option:"manager.Options.CacheBytes" default:"10000000000" range:"1048576..1000000000000000" unit:"bytes" help:"size of the download cache, besides what is in use"`
	MaxDownloadBytes  int64         `name:"max_download_bytes" option:"manager.Options.MaxDownloadBytes" default:"4294967296" range:"1..1000000000000000" unit:"bytes" help:"size of the largest archive"`
	MaxContentBytes   int64         `name:"max_content_bytes" option:"manager.Options.MaxContentBytes" default:"8589934592" range:"1..1000000000000000" unit:"bytes" help:"how much an archive may unpack to, and an upload may hold"`
	MaxContentEntries int           `name:"max_content_entries" option:"manager.Options.MaxContentEntries" default:"500000" range:"1..1000000000" help:"how many files, directories and links an archive may have"`

	LogSegmentBytes int64 `name:"log_segment_bytes" option:"manager.Options.LogSegmentBytes" default:"5242880" range:"4096..1073741824" unit:"bytes" help:"size of one file of a log of a container"`
	LogSegments     int   `name:"log_segments" option:"manager.Options.LogSegments" default:"2" range:"1..1000" unit:"files" help:"how many files of each of its three logs are kept"`
	EndedLogs       int   `name:"ended_logs" option:"manager.Options.EndedLogs,by hand" default:"200" range:"0..100000" unit:"containers" help:"how many gone containers keep the end of each log"`
	EndedLogBytes   int64 `name:"ended_log_bytes" option:"manager.Options.EndedLogBytes" default:"65536" range:"1..1073741824" unit:"bytes" help:"how much of each log of such a container is kept"`

	Sessions     int           `name:"sessions" option:"manager.Options.Sessions,by hand" default:"32" range:"0..1000" help:"exec and cp at a time"`
	SessionsEach int           `name:"sessions_each" option:"manager.Options.SessionsEach" default:"4" range:"1..1000" help:"of them in a container"`
	SessionIdle  time.Duration `name:"session_idle" option:"manager.Options.SessionIdle" default:"1h" range:"1s..24h" help:"silence that ends one"`

	EvacuationTimeout  time.Duration `name:"evacuation_timeout" option:"rep.Options.EvacuationTimeout" default:"10m" range:"1s..24h" help:"how long the work may take to leave the cell when it is drained"`
	StopPause          time.Duration `name:"stop_pause" option:"rep.Options.StopPause,by hand" default:"5s" range:"0s..5m" help:"how long a replaced instance runs on after its route was withdrawn; 0 for not at all"`
	SyncInterval       time.Duration `name:"sync_interval" option:"rep.Options.SyncInterval" default:"30s" range:"100ms..1h" help:"between two comparisons of containers and records"`
	PresenceTTL        time.Duration `name:"presence_ttl" option:"bbs.AnnouncerOptions.TTL,by hand" default:"15s" range:"1s..10m" help:"how long the cell stays present without a renewal"`
	Concurrency        int           `name:"concurrency" option:"rep.Options.Concurrency" default:"16" range:"1..10000" help:"how many containers are compared with their records at a time"`
	RetryInterval      time.Duration `name:"retry_interval" option:"rep.Options.RetryInterval" default:"5s" range:"10ms..1h" help:"the wait after a failure of a comparison"`
	CallTimeout        time.Duration `name:"call_timeout" option:"rep.Options.CallTimeout" default:"10s" range:"100ms..10m" help:"how long a call of the control plane may take"`
	EvacuationInterval time.Duration `name:"evacuation_interval" option:"rep.Options.EvacuationInterval" default:"10s" range:"100ms..1h" help:"between two comparisons while the cell is drained"`
	FinishTimeout      time.Duration `name:"finish_timeout" option:"rep.Options.FinishTimeout" default:"30s" range:"1s..24h" help:"how long a drained cell tries to report what is left to a control plane that does not answer"`
}

// Manager sets the options of a manager that the settings describe.
func (u *Upkeep) Manager(o *manager.Options) {
	apply(u, o)
	o.EndedLogs = cmp.Or(u.EndedLogs, -1) // 0 would be the default
	o.Sessions = cmp.Or(u.Sessions, -1)
}

// Rep sets the options of a rep that the settings describe.
func (u *Upkeep) Rep(o *rep.Options) {
	apply(u, o)
	o.StopPause = cmp.Or(u.StopPause, -1) // 0 would be the default
	o.AnnounceInterval = u.PresenceTTL / 3
}
