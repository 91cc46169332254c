package rep

import "github.com/diegosdk/diego/lrp"

// DecideLRP is the table for LRPs on a cell that operates normally (000
// §Harmonizing ActualLRPs with Container State: Rep). It panics on values that
// are not situations.
func DecideLRP(c ContainerSituation, l LRPSituation) Row { return lrpTable[c][l] }

// LRPRunFailed says what to do when RunContainer fails at once (000 §Starting
// ActualLRPs). A container that fails later is COMPLETED, which is in the
// table.
func LRPRunFailed() Row { return lrpRunFailed }

var lrpRunFailed = Row{do(RemoveLRP, DeleteContainer), lrp.Conceivable, "the claim is given back, and the index is placed again", spec}

// LRPOutdated says what to do when the RUNNING record of a RUNNING container's
// instance has other addresses, another zone or another readiness than the
// container. The table looks at none of these.
func LRPOutdated() Row { return lrpOutdated }

var lrpOutdated = Row{do(StartLRP), lrp.Expected, "the instance is reached in another way, or became ready or unready", added}

var lrpTable = [ContainerSituations][LRPSituations]Row{
	NoContainer: {
		LRPNone:            {nil, lrp.Expected, "nothing here and nothing recorded", added},
		LRPUnclaimed:       {nil, lrp.Expected, "the auctioneer will find a cell", added},
		LRPClaimedAlpha:    {do(RemoveLRP), lrp.Conceivable, "the container is gone; the BBS knows whether another is wanted", spec},
		LRPClaimedOmega:    {nil, lrp.Expected, "the record is another instance's", added},
		LRPRunningAlpha:    {do(RemoveLRP), lrp.Conceivable, "the container is gone; the BBS knows whether another is wanted", spec},
		LRPRunningOmega:    {nil, lrp.Expected, "the record is another instance's", added},
		LRPCrashed:         {nil, lrp.Expected, "convergence restarts it in its time", added},
		LRPSuspectAlpha:    {do(RemoveLRP), lrp.Conceivable, "the instance did not survive what made it suspect, so nobody should be routed to it", added},
		LRPEvacuatingAlpha: {do(RemoveEvacuatingLRP), lrp.Conceivable, "the evacuated instance is gone, so nobody should be routed to it", added},
	},
	ContainerReserved: {
		LRPNone:            {do(DeleteContainer), lrp.Conceivable, "the LRP is no longer wanted: it was scaled down or deleted", spec},
		LRPUnclaimed:       {do(ClaimLRP, RunContainer), lrp.Expected, "this cell won the auction", spec},
		LRPClaimedAlpha:    {do(RunContainer), lrp.Conceivable, "the claim is ours already, but the container does not run yet", spec},
		LRPClaimedOmega:    {do(DeleteContainer), lrp.Conceivable, "another instance got further than ours", spec},
		LRPRunningAlpha:    {do(ClaimLRP, RunContainer), lrp.Inconceivable, "nothing runs yet: correct the record and go on", spec},
		LRPRunningOmega:    {do(DeleteContainer), lrp.Conceivable, "another instance got further than ours", spec},
		LRPCrashed:         {do(DeleteContainer), lrp.Conceivable, "the index waits for its restart", spec},
		LRPSuspectAlpha:    {nil, lrp.Conceivable, "convergence makes the claim ours again, or removes it once a replacement runs", added},
		LRPEvacuatingAlpha: {do(RemoveEvacuatingLRP, DeleteContainer), lrp.Inconceivable, "an evacuating instance is RUNNING, and this one never was", added},
	},
	ContainerStarting: {
		LRPNone:            {do(DeleteContainer), lrp.Conceivable, "the LRP is no longer wanted: it was scaled down or deleted", spec},
		LRPUnclaimed:       {do(ClaimLRP), lrp.Inconceivable, "the claim comes before the start: correct the record", spec},
		LRPClaimedAlpha:    {nil, lrp.Expected, "the record says what is the case", spec},
		LRPClaimedOmega:    {do(DeleteContainer), lrp.Conceivable, "another instance is starting, so ours is one too many", spec},
		LRPRunningAlpha:    {do(ClaimLRP), lrp.Inconceivable, "the instance is not ready yet: correct the record", spec},
		LRPRunningOmega:    {do(DeleteContainer), lrp.Conceivable, "another instance runs, so ours is one too many", spec},
		LRPCrashed:         {do(DeleteContainer), lrp.Conceivable, "the index waits for its restart, which is not this one", spec},
		LRPSuspectAlpha:    {nil, lrp.Conceivable, "convergence makes the claim ours again, or removes it once a replacement runs", added},
		LRPEvacuatingAlpha: {do(RemoveEvacuatingLRP, DeleteContainer), lrp.Inconceivable, "an evacuating instance is RUNNING, and this one never was", added},
	},
	ContainerRunning: {
		LRPNone:            {do(StartLRP), lrp.Conceivable, "the BBS is told what runs: if it lost its records, that must not stop containers", spec},
		LRPUnclaimed:       {do(StartLRP), lrp.Conceivable, "the instance runs and need not be started elsewhere", spec},
		LRPClaimedAlpha:    {do(StartLRP), lrp.Expected, "the instance became healthy; one that was evacuated to here is done", spec},
		LRPClaimedOmega:    {do(StartLRP), lrp.Conceivable, "ours runs before ω's does, so ω's is one too many", spec},
		LRPRunningAlpha:    {nil, lrp.Expected, "the record says what is the case", spec},
		LRPRunningOmega:    {do(DeleteContainer), lrp.Conceivable, "another instance runs, so ours is one too many", spec},
		LRPCrashed:         {do(StartLRP), lrp.Conceivable, "the instance is alive and needs no restart", spec},
		LRPSuspectAlpha:    {do(StartLRP), lrp.Conceivable, "the BBS does not see this cell; it refuses once a replacement runs, and till then convergence decides", added},
		LRPEvacuatingAlpha: {do(StartLRP), lrp.Conceivable, "this cell no longer evacuates, so the instance stays", added},
	},
	ContainerCrashed: {
		LRPNone:            {do(CrashLRP, DeleteContainer), lrp.Unstated, "the BBS is told what is known to be true, as it may have lost its records", spec},
		LRPUnclaimed:       {do(DeleteContainer), lrp.Unstated, "the index is being placed anyway", spec},
		LRPClaimedAlpha:    {do(CrashLRP, DeleteContainer), lrp.Unstated, "the instance crashed while it started", spec},
		LRPClaimedOmega:    {do(DeleteContainer), lrp.Unstated, "another instance is starting, which this crash does not concern", spec},
		LRPRunningAlpha:    {do(CrashLRP, DeleteContainer), lrp.Unstated, "the instance crashed while it ran", spec},
		LRPRunningOmega:    {do(DeleteContainer), lrp.Unstated, "another instance runs, which this crash does not concern", spec},
		LRPCrashed:         {do(DeleteContainer), lrp.Unstated, "the crash is recorded already", spec},
		LRPSuspectAlpha:    {do(CrashLRP, DeleteContainer), lrp.Conceivable, "nobody should be routed to the instance; its replacement is on the way", added},
		LRPEvacuatingAlpha: {do(RemoveEvacuatingLRP, DeleteContainer), lrp.Conceivable, "nobody should be routed to the instance; its replacement is on the way", added},
	},
	ContainerShutdown: {
		LRPNone:            {do(DeleteContainer), lrp.Conceivable, "it was told to stop, and its record is gone already", spec},
		LRPUnclaimed:       {do(DeleteContainer), lrp.Conceivable, "the index is being placed anyway", spec},
		LRPClaimedAlpha:    {do(RemoveLRP, DeleteContainer), lrp.Conceivable, "it was told to stop while it started", spec},
		LRPClaimedOmega:    {do(DeleteContainer), lrp.Conceivable, "the record is another instance's", spec},
		LRPRunningAlpha:    {do(RemoveLRP, DeleteContainer), lrp.Expected, "it was told to stop and has stopped", spec},
		LRPRunningOmega:    {do(DeleteContainer), lrp.Conceivable, "the record is another instance's", spec},
		LRPCrashed:         {do(DeleteContainer), lrp.Conceivable, "the index waits for its restart, which needs no container", spec},
		LRPSuspectAlpha:    {do(RemoveLRP, DeleteContainer), lrp.Conceivable, "nobody should be routed to the instance; its replacement is on the way", added},
		LRPEvacuatingAlpha: {do(RemoveEvacuatingLRP, DeleteContainer), lrp.Conceivable, "nobody should be routed to the instance; its replacement is on the way", added},
	},
}
