package main

import (
	"context"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/util/sets"
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
}

func ask(w world) (*answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p, err := newProfile(ctx, w)
	if err != nil {
		return nil, err
	}
	a := &answer{Nodes: map[string]verdict{}}
	for _, plugin := range p.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, p.pod); !status.IsSuccess() {
			a.PreEnqueue = refused(plugin.Name(), status)
		}
	}
	feasible, state := p.find(ctx, a)
	p.everyRefusal(ctx, a)
	if len(feasible) > 0 {
		p.score(ctx, a, state, feasible)
	}
	return a, nil
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
	for _, node := range p.nodes {
		name := node.Node().Name
		of := a.Nodes[name]
		for _, named := range p.order.Filter.Enabled {
			if unasked.Has(named.Name) {
				continue
			}
			status := p.plugins[named.Name].(fwk.FilterPlugin).Filter(ctx, state, p.pod, node)
			if !status.IsSuccess() {
				sort.Strings(status.Reasons())
				of.Fails = append(of.Fails, *refused(named.Name, status))
			}
		}
		a.Nodes[name] = of
	}
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
