package auction

import "fmt"

// Why names the criterion that decided for the winner, for people: the first in
// which it is better than the runner-up. The scores have all criteria.
func (p Placement) Why() string {
	won, lost, other := p.Score, p.RunnerUp.Score, p.RunnerUp.CellID
	switch {
	case other == "":
		return "no other cell can take it"
	case won.Preference != lost.Preference:
		return fmt.Sprintf("preferred: %g against %g on %s", won.Preference, lost.Preference, other)
	case won.ZoneInstances != lost.ZoneInstances:
		return fmt.Sprintf("fewest of its process in the zone: %d against %d with %s", won.ZoneInstances, lost.ZoneInstances, other)
	case won.CellInstances != lost.CellInstances:
		return fmt.Sprintf("fewest of its process: %d against %d on %s", won.CellInstances, lost.CellInstances, other)
	case won.CellTasks != lost.CellTasks:
		return fmt.Sprintf("fewest tasks: %d against %d on %s", won.CellTasks, lost.CellTasks, other)
	case won.Resources() < lost.Resources():
		return fmt.Sprintf("least load: %.4f against %.4f on %s", won.Resources(), lost.Resources(), other)
	case won.Resources() > lost.Resources():
		return fmt.Sprintf("fullest of equally loaded cells: %.4f against %.4f on %s", won.Resources(), lost.Resources(), other)
	}
	return "as good as " + other
}

// reason is the winner's score and why it won, for the timeline of an instance.
func (p Placement) reason() string {
	return fmt.Sprintf("score %.4f, %s", p.Score.Resources(), p.Why())
}
