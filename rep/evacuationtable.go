package rep

import "github.com/diegosdk/diego/lrp"

// DecideEvacuation is the table for LRPs on a cell that shuts down (000
// §Harmonizing During Evacuation). The BBS decides what becomes of the records;
// for a RUNNING container it does so by [lrp.EvacuationRule], and its answer
// says whether the container stays. Without a container the table is that of
// [DecideLRP]. It panics on values that are not situations.
//
// When the cell exits, empty or out of time, it treats everything that is left
// as if its container were gone: by NoContainer here, and by TaskContainerNone
// in [DecideTask], with the reason task.ReasonEvacuationTimedOut. Only a task
// that has ended is reported with its result.
func DecideEvacuation(c ContainerSituation, l LRPSituation) Row {
	if c == NoContainer {
		return DecideLRP(c, l)
	}
	return evacuationTable[c]
}

var evacuationTable = [ContainerSituations]Row{
	ContainerReserved: {do(EvacuateClaimedLRP, DeleteContainer), lrp.Unstated, "nothing runs yet: another cell starts it instead", spec},
	ContainerStarting: {do(EvacuateClaimedLRP, DeleteContainer), lrp.Unstated, "it is not ready yet: another cell starts it instead", spec},
	ContainerRunning:  {do(EvacuateRunningLRP, DeleteContainerUnlessKept), lrp.Expected, "it stays until its replacement runs", spec},
	ContainerCrashed:  {do(EvacuateCrashedLRP, DeleteContainer), lrp.Unstated, "the crash is recorded as usual; another cell restarts it", spec},
	ContainerShutdown: {do(EvacuateStoppedLRP, DeleteContainer), lrp.Unstated, "it was told to stop and has stopped", spec},
}
