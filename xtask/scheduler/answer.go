package main

import (
	"context"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// What a plugin refuses, and why.
type refusal struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

type verdict struct {
	Fits  bool      `json:"fits"`
	Fails []refusal `json:"fails,omitempty"`
}

type score struct {
	Raw      int64 `json:"raw"`
	Weighted int64 `json:"weighted"`
}

type answer struct {
	PreEnqueue     *refusal                    `json:"preenqueue,omitempty"`
	PreFilter      *refusal                    `json:"prefilter,omitempty"`
	PreFilterLater []refusal                   `json:"prefilter_later,omitempty"`
	PreFilterNodes []string                    `json:"prefilter_nodes,omitempty"`
	Nodes          map[string]verdict          `json:"nodes"`
	Message        string                      `json:"message,omitempty"`
	Scores         map[string]map[string]score `json:"scores,omitempty"`
	ScoreError     string                      `json:"score_error,omitempty"`
	Chosen         string                      `json:"chosen,omitempty"`
}

// ask answers about each pod in its turn. Of the nodes that fit it goes to the one of the highest
// score, of equal ones to the first by name; what it takes is kept from those after it.
func ask(w world) ([]*answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, err := newProfile(ctx, w)
	if err != nil {
		return nil, err
	}
	var all []*answer
	for _, pod := range p.pods {
		p.pod = pod
		a, err := p.turn(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (p *profile) turn(ctx context.Context) (*answer, error) {
	a := &answer{Nodes: map[string]verdict{}}
	for _, plugin := range p.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, p.pod); !status.IsSuccess() {
			a.PreEnqueue = refused(plugin.Name(), status)
		}
	}
	feasible, state := p.find(ctx, a)
	p.everyRefusal(ctx, a)
	if len(feasible) == 0 || a.PreEnqueue != nil {
		return a, nil
	}
	p.score(ctx, a, state, feasible)
	return a, p.place(ctx, a, state, feasible)
}

// place takes the pod to its node.
func (p *profile) place(ctx context.Context, a *answer, state fwk.CycleState, feasible []fwk.NodeInfo) error {
	if len(feasible) > 1 && a.Scores == nil {
		return nil
	}
	most := int64(-1)
	for _, node := range feasible {
		name, sum := node.Node().Name, int64(0)
		for _, score := range a.Scores[name] {
			sum += score.Weighted
		}
		if sum > most || sum == most && name < a.Chosen {
			most, a.Chosen = sum, name
		}
	}
	logger := klog.FromContext(ctx)
	assumed := p.pod.DeepCopy()
	assumed.Spec.NodeName = a.Chosen
	if err := p.cache.AssumePod(logger, assumed); err != nil {
		return err
	}
	if status := p.RunReservePluginsReserve(ctx, state, assumed, a.Chosen); !status.IsSuccess() {
		return status.AsError()
	}
	if err := p.cache.UpdateSnapshot(logger, p.snapshot); err != nil {
		return err
	}
	var err error
	p.nodes, err = p.snapshot.List()
	return err
}

func refused(plugin string, status *fwk.Status) *refusal {
	return &refusal{plugin, status.Code().String(), status.Reasons()}
}

// find goes the way of kube-scheduler's scheduling cycle: the nodes that fit, else the message.
func (p *profile) find(ctx context.Context, a *answer) ([]fwk.NodeInfo, fwk.CycleState) {
	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	only, status, by := p.RunPreFilterPlugins(ctx, state, p.pod)
	var feasible []fwk.NodeInfo
	if !status.IsSuccess() {
		a.PreFilter = refused(status.Plugin(), status)
		diagnosis.PreFilterMsg = status.Message()
	} else {
		if !only.AllNodes() {
			a.PreFilterNodes = sets.List(only.NodeNames)
			text := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(by))
			diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, text))
		}
		for _, node := range p.nodes {
			name := node.Node().Name
			if !only.AllNodes() && !only.NodeNames.Has(name) {
				continue
			}
			status := p.RunFilterPluginsWithNominatedPods(ctx, state, p.pod, node)
			if status.IsSuccess() {
				feasible = append(feasible, node)
			} else {
				diagnosis.NodeToStatus.Set(name, status)
			}
		}
	}
	for _, node := range p.nodes {
		a.Nodes[node.Node().Name] = verdict{}
	}
	for _, node := range feasible {
		a.Nodes[node.Node().Name] = verdict{Fits: true}
	}
	if len(feasible) == 0 {
		a.Message = (&framework.FitError{Pod: p.pod, NumAllNodes: len(p.nodes), Diagnosis: diagnosis}).Error()
	}
	return feasible, state
}

// everyRefusal asks the plugins that kube-scheduler does not come to as well.
func (p *profile) everyRefusal(ctx context.Context, a *answer) {
	state := framework.NewCycleState()
	unasked := sets.New[string]()
	for _, named := range p.order.PreFilter.Enabled {
		plugin := p.plugins[named.Name].(fwk.PreFilterPlugin)
		_, status := plugin.PreFilter(ctx, state, p.pod, p.nodes)
		if status.IsSuccess() {
			continue
		}
		unasked.Insert(named.Name)
		if !status.IsSkip() && a.PreFilter != nil && a.PreFilter.Plugin != named.Name {
			a.PreFilterLater = append(a.PreFilterLater, *refused(named.Name, status))
		}
	}
	state.SetSkipFilterPlugins(unasked)
	for _, node := range p.nodes {
		name := node.Node().Name
		of := a.Nodes[name]
		if with, there, any := p.withPromised(ctx, state, node); any {
			of.Fails = p.refusals(ctx, with, there, unasked)
		}
		if of.Fails == nil {
			of.Fails = p.refusals(ctx, state, node, unasked)
		}
		a.Nodes[name] = of
	}
}

// refusals asks each filter about a node.
func (p *profile) refusals(ctx context.Context, state fwk.CycleState, node fwk.NodeInfo, unasked sets.Set[string]) []refusal {
	var all []refusal
	for _, named := range p.order.Filter.Enabled {
		if unasked.Has(named.Name) {
			continue
		}
		status := p.plugins[named.Name].(fwk.FilterPlugin).Filter(ctx, state, p.pod, node)
		if !status.IsSuccess() {
			sort.Strings(status.Reasons())
			all = append(all, *refused(named.Name, status))
		}
	}
	return all
}

// withPromised is a node with the pods there that it is promised to and that count for the pod: those
// of no lower priority.
func (p *profile) withPromised(ctx context.Context, state fwk.CycleState, node fwk.NodeInfo) (fwk.CycleState, fwk.NodeInfo, bool) {
	state, there, any := state.Clone(), node.Snapshot(), false
	for _, promised := range p.promised.NominatedPodsForNode(node.Node().Name) {
		if corev1helpers.PodPriority(promised.GetPod()) < corev1helpers.PodPriority(p.pod) {
			continue
		}
		there.AddPodInfo(promised)
		if status := p.RunPreFilterExtensionAddPod(ctx, state, p.pod, promised, there); !status.IsSuccess() {
			continue
		}
		any = true
	}
	return state, there, any
}

// score gives each plugin's raw and weighted score on the nodes that fit.
func (p *profile) score(ctx context.Context, a *answer, state fwk.CycleState, nodes []fwk.NodeInfo) {
	if status := p.RunPreScorePlugins(ctx, state, p.pod, nodes); !status.IsSuccess() {
		a.ScoreError = status.Message()
		return
	}
	scored, status := p.RunScorePlugins(ctx, state, p.pod, nodes)
	if !status.IsSuccess() {
		a.ScoreError = status.Message()
		return
	}
	a.Scores = map[string]map[string]score{}
	for _, node := range scored {
		of := map[string]score{}
		for _, plugin := range node.Scores {
			of[plugin.Name] = score{Weighted: plugin.Score}
		}
		for _, plugin := range node.RawScores {
			of[plugin.Name] = score{Raw: plugin.Score, Weighted: of[plugin.Name].Weighted}
		}
		a.Scores[node.Name] = of
	}
}
