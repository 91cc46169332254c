package system_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// behaviours are the tests of what a BBS does that are repeated over HTTP.
var behaviours = map[string]func(*testing.T){
	"scaling":             TestScalingADeploymentStartsAndStopsInstancesAtOnce,
	"a large deployment":  TestALargeDeploymentIsMadeInBatches,
	"rolling out":         TestANewDefinitionIsRolledOutOneIndexAfterAnother,
	"crashing once":       TestAnInstanceCrashesOnceHoweverOftenThatIsReported,
	"proving healthy":     TestARolloutGoesOnWhenItsNewInstanceHasBeenHealthyForLongEnough,
	"own policies":        TestAProcessCrashesByItsOwnPolicyUnlessItAsksForMoreThanItMay,
	"starting a task":     TestTheFirstAnswerToStartTaskIsGivenAgain,
	"retiring":            TestRetiredInstancesStartAgain,
	"evacuating":          TestAnEvacuatingCellKeepsItsInstancesUntilTheyAreReplaced,
	"fitting nowhere":     TestAnInstanceThatFitsNowhereSaysWhy,
	"domains":             TestDomainsSayWhetherTheyAreFresh,
	"missing or there":    TestWhatIsMissingOrInTheWayIsTheSameErrorForEveryCall,
	"updating to another": TestADesiredLRPIsUpdatedToAnotherByARollout,
	"groups":              TestGroupsAreReadForEachDefinitionAndForTheActiveOne,
	"one call for a task": TestATaskIsResolvedAndDeletedInOneCall,
	"cells":               TestCellsAreListedWithWhatTheyOffer,
	"tasks":               TestTasksRunAndAreDealtWithByTheirConsumer,
	"wrong calls":         TestCallsThatAreWrongChangeNothing,
	"repeated once":       TestACallThatWasCarriedOutIsNeverRefusedWhenItIsRepeated,
	"repeated calls":      TestACallThatIsRepeatedWithItsRequestIDIsCarriedOutOnce,
	"resuming":            TestASubscriberThatResumesMissesNothingAndSeesNothingTwice,
	"from now":            TestASubscriptionFromNowBeginsWhenItIsMade,
	"filters":             TestASubscriberGetsWhatItsFilterWants,
	"too slow":            TestASubscriberThatIsTooSlowForTheLogIsTold,
	"sessions":            TestSessionsAreEventsInTheStreamAndInTheTimeline,
	"timelines":           TestATimelineTellsWhatHappenedToAnInstanceAndWhy,
	"labels":              TestConsumersReadLabelsOfInstancesIfTheyAsk,
	"selectors":           TestEveryListIsSelectedByLabels,
	"selected events":     TestEventsAreSelectedByTheLabelsOfTheirMoment,
	"lists for routers":   TestRoutersAndSyncsListProcessesWithoutTheirDefinitions,
	"lost effects":        TestEffectsThatAreLostAfterTheCommitAreAskedForAgain,
	"a store that fails":  TestAStoreThatIsDownForHalfAMinuteHarmsNobody,
	"lost presences":      TestLosingAllPresencesForOneTTLRestartsNoHealthyInstance,
}

func TestTheSameHoldsOverHTTP(t *testing.T) {
	for name, test := range behaviours {
		t.Run(name, test)
	}
}

// asked is the BBS of a control plane as the running test asks it.
func (s *system) asked(p *diego.ControlPlane) bbs.API {
	if !strings.HasPrefix(s.t.Name(), "TestTheSameHoldsOverHTTP/") {
		return p.BBS
	}
	return overHTTP(s.t, p)
}

// overHTTP serves a control plane on a loopback address and asks it there.
func overHTTP(t testing.TB, p *diego.ControlPlane) *httpapi.RemoteBBS {
	t.Helper()
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: p.BBS, Convergence: p, Auctioneer: p, Ready: p.Ready, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTheClientHasEveryMethodOfABBS(t *testing.T) {
	for _, other := range []reflect.Type{reflect.TypeFor[*httpapi.RemoteBBS](), reflect.TypeFor[bbs.API]()} {
		service := reflect.TypeFor[*bbs.BBS]()
		for i := range service.NumMethod() {
			want := service.Method(i)
			if want.Name == "SubscribeWithPosition" {
				continue // the optional bbs.PositionSubscriber: over HTTP Subscribe is told the position
			}
			got, ok := other.MethodByName(want.Name)
			if !ok {
				t.Errorf("%v has no method %s", other, want.Name)
				continue
			}
			if got, want := signature(got, other.Kind() != reflect.Interface), signature(want, true); got != want {
				t.Errorf("%v.%s is %s, want %s", other, "", got, want)
			}
		}
	}
}

// signature is a method's type without its receiver.
func signature(m reflect.Method, receiver bool) string {
	var parts []string
	for i := range m.Type.NumIn() {
		if i > 0 || !receiver {
			parts = append(parts, m.Type.In(i).String())
		}
	}
	parts = append(parts, "->")
	for i := range m.Type.NumOut() {
		parts = append(parts, m.Type.Out(i).String())
	}
	return strings.Join(parts, " ")
}

// quiet discards what servers say of connections that fail.
var quiet = log.New(io.Discard, "", 0)

// emptyIsNil takes empty lists and maps for none.
var emptyIsNil = cmpopts.EquateEmpty()

func newQuickRand(seed uint64) *rand.Rand { return rand.New(rand.NewSource(int64(seed))) }

// withoutMembers is the BBS over HTTP as a release that does not know some members.
func withoutMembers(s *system, members ...string) *httpapi.RemoteBBS {
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: s.BBS, AllowPlain: true})
	s.must(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, m := range members {
			body = bytes.ReplaceAll(body, []byte(`"`+m+`":`), []byte(`"no_such_member":`))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		handler.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	s.must(err)
	return client
}

// A BBS of 0.1 knows no reasons of claims.
func TestAClaimWithAReasonIsTakenByABBSThatKnowsNone(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	client := withoutMembers(s, "reason")
	me := lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}
	s.must(client.ClaimLRP(s.ctx, "web", 0, lrp.Claim{Instance: me, Reason: "score 0.5"}))
	if slot, err := s.BBS.Slot(s.ctx, "web", 0); err != nil || len(slot.Records) != 1 || slot.Records[0].InstanceKey != me {
		t.Errorf("%+v, %v", slot, err)
	}
	// A claim that is wrong in another way is still refused.
	if err := client.ClaimLRP(s.ctx, "web", 0, lrp.Claim{Reason: "score 0.5"}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("nobody's claim: %v", err)
	}
}

// A BBS of 0.1 knows neither the members that keep lists small nor selectors.
func TestListsComeWholeFromABBSThatCannotKeepThemSmall(t *testing.T) {
	s := newSystem(t, 1, nil)
	for _, guid := range []string{"a", "b"} {
		s.must(s.BBS.Desire(s.ctx, desired(guid, 1)))
		s.must(s.BBS.DesireTask(s.ctx, desiredTask("job-"+guid, "")))
	}
	client := withoutMembers(s, "definition_ids", "without_definitions", "selector")
	whole := gather(s, s.BBS.Deployments(s.ctx, storage.DeploymentFilter{}))
	one := []string{"b"}
	for name, test := range map[string]struct {
		filter storage.DeploymentFilter
		want   []*lrp.Deployment
	}{
		"one definition":              {storage.DeploymentFilter{DefinitionIDs: one}, whole},
		"no definitions":              {storage.DeploymentFilter{WithoutDefinitions: true}, whole},
		"one definition of a process": {storage.DeploymentFilter{ProcessGUIDs: one, DefinitionIDs: one}, whole[1:]},
		"nothing":                     {storage.DeploymentFilter{ProcessGUIDs: []string{"none"}, DefinitionIDs: one}, nil},
		"bare":                        {storage.DeploymentFilter{Bare: true, DefinitionIDs: one}, []*lrp.Deployment{storage.Bare(whole[0]), storage.Bare(whole[1])}},
	} {
		if diff := cmp.Diff(test.want, gather(s, client.Deployments(s.ctx, test.filter)), emptyIsNil); diff != "" {
			t.Errorf("deployments, %s (-want +got):\n%s", name, diff)
		}
	}
	tasks := withoutMembers(s, "bare", "selector")
	if diff := cmp.Diff(gather(s, s.BBS.Tasks(s.ctx, storage.TaskFilter{})), gather(s, tasks.Tasks(s.ctx, storage.TaskFilter{Bare: true}))); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}

	// What selects is never left out.
	selector, err := executor.ParseSelector("team=blog")
	s.must(err)
	items := 0
	for d, e := range client.Deployments(s.ctx, storage.DeploymentFilter{DefinitionIDs: one, Selector: selector}) {
		if items++; d != nil || !errors.Is(e, executor.ErrInvalid) {
			t.Errorf("selected deployments: %v, %v", d, e)
		}
	}
	for k, e := range tasks.Tasks(s.ctx, storage.TaskFilter{Bare: true, Selector: selector}) {
		if items++; k != nil || !errors.Is(e, executor.ErrInvalid) {
			t.Errorf("selected tasks: %v, %v", k, e)
		}
	}
	if items != 2 {
		t.Errorf("two lists that are refused have %d errors", items)
	}
}
