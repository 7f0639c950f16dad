package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// What is asked: a pod in a world of objects.
type world struct {
	Objects []json.RawMessage `json:"objects"`
	Pod     json.RawMessage   `json:"pod"`
}

// kube-scheduler's default profile over a world.
type profile struct {
	framework.Framework
	plugins map[string]fwk.Plugin
	order   *schedulerapi.Plugins
	nodes   []fwk.NodeInfo
	pod     *v1.Pod
}

// nominations are the pods with a promised node, by node.
type nominations struct {
	fwk.PodNominator
	of map[string][]fwk.PodInfo
}

func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo { return n.of[node] }

func (n nominations) add(pod *v1.Pod) error {
	info, err := framework.NewPodInfo(pod)
	if err == nil {
		on := pod.Status.NominatedNodeName
		n.of[on] = append(n.of[on], info)
	}
	return err
}

func decode(text []byte) (runtime.Object, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}

// decodeAll answers the objects, the pod among them once, and the pod.
func decodeAll(w world) ([]runtime.Object, *v1.Pod, error) {
	asked, err := decode(w.Pod)
	if err != nil {
		return nil, nil, err
	}
	pod, ok := asked.(*v1.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("`pod` is a %T", asked)
	}
	objects := []runtime.Object{pod}
	for _, text := range w.Objects {
		object, err := decode(text)
		if err != nil {
			return nil, nil, err
		}
		if other, ok := object.(*v1.Pod); ok && other.Namespace == pod.Namespace && other.Name == pod.Name {
			continue
		}
		objects = append(objects, object)
	}
	return objects, pod, nil
}

// isOver says whether kube-scheduler no longer sees a pod.
func isOver(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// fill hands the nodes and the pods on them to kube-scheduler's cache, as its event handlers do.
func fill(logger klog.Logger, of cache.Cache, promised nominations, objects []runtime.Object, asked *v1.Pod) error {
	for _, object := range objects {
		if node, ok := object.(*v1.Node); ok {
			of.AddNode(logger, node)
		}
	}
	for _, object := range objects {
		pod, ok := object.(*v1.Pod)
		if !ok || pod == asked || isOver(pod) {
			continue
		}
		var err error
		if pod.Spec.NodeName != "" {
			err = of.AddPod(logger, pod)
		} else if pod.Status.NominatedNodeName != "" {
			err = promised.add(pod)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newProfile builds the profile and waits until it has seen the objects.
func newProfile(ctx context.Context, w world) (*profile, error) {
	objects, pod, err := decodeAll(w)
	if err != nil {
		return nil, err
	}
	logger := klog.FromContext(ctx)
	client := fake.NewSimpleClientset(objects...)
	factory := scheduler.NewInformerFactory(client, 0, nil)
	dra, err := newDRA(ctx, logger, client, factory)
	if err != nil {
		return nil, err
	}
	promised := nominations{of: map[string][]fwk.PodInfo{}}
	state := cache.New(ctx, nil, false, false)
	if err := fill(logger, state, promised, objects, pod); err != nil {
		return nil, err
	}
	snapshot := cache.NewEmptySnapshot()
	if err := state.UpdateSnapshot(logger, snapshot); err != nil {
		return nil, err
	}
	made := &profile{plugins: map[string]fwk.Plugin{}, pod: pod}
	config, err := defaultProfile()
	if err != nil {
		return nil, err
	}
	made.Framework, err = frameworkruntime.NewFramework(ctx, made.registry(), config,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(dra),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithMutableSnapshotLister(snapshot),
		frameworkruntime.WithPodNominator(promised),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithPodGroupManager(state),
	)
	if err != nil {
		return nil, err
	}
	made.order = made.ListPlugins()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	// What assumes volumes and claims takes its events from the informers a moment later.
	time.Sleep(50 * time.Millisecond)
	made.nodes, err = snapshot.List()
	return made, err
}

func newDRA(ctx context.Context, logger klog.Logger, client *fake.Clientset, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	claims := assumecache.NewAssumeCache(logger, factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{
		EnableConsumableCapacity: true,
		SliceInformer:            factory.Resource().V1().ResourceSlices(),
		KubeClient:               client,
	})
	if err != nil {
		return nil, err
	}
	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}

// registry makes kube-scheduler's plugins and keeps each as it is made.
func (p *profile) registry() frameworkruntime.Registry {
	kept := frameworkruntime.Registry{}
	for name, make := range plugins.NewInTreeRegistry() {
		kept[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := make(ctx, args, handle)
			p.plugins[name] = plugin
			return plugin, err
		}
	}
	return kept
}

func defaultProfile() (*schedulerapi.KubeSchedulerProfile, error) {
	var versioned configv1.KubeSchedulerConfiguration
	configscheme.Scheme.Default(&versioned)
	var config schedulerapi.KubeSchedulerConfiguration
	if err := configscheme.Scheme.Convert(&versioned, &config, nil); err != nil {
		return nil, err
	}
	return &config.Profiles[0], nil
}
