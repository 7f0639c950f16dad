package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
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

// What is asked: pods in a world of objects, each once those before it have their node.
type world struct {
	Objects []json.RawMessage `json:"objects"`
	Pods    []json.RawMessage `json:"pods"`
}

// kube-scheduler's default profile over a world.
type profile struct {
	framework.Framework
	plugins  map[string]fwk.Plugin
	order    *schedulerapi.Plugins
	promised nominations
	cache    cache.Cache
	snapshot *cache.Snapshot
	nodes    []fwk.NodeInfo
	// The pods that are asked about, and that of them that is asked about now.
	pods []*v1.Pod
	pod  *v1.Pod
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

// decodeAll answers the objects, those asked about among them, and these.
func decodeAll(w world) ([]runtime.Object, []*v1.Pod, error) {
	var objects []runtime.Object
	var pods []*v1.Pod
	for _, text := range w.Objects {
		object, err := decode(text)
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, object)
	}
	for _, text := range w.Pods {
		object, err := decode(text)
		if err != nil {
			return nil, nil, err
		}
		pod, ok := object.(*v1.Pod)
		if !ok {
			return nil, nil, fmt.Errorf("one of `pods` is a %T", object)
		}
		objects = append(objects, pod)
		pods = append(pods, pod)
	}
	return objects, pods, nil
}

// isOver says whether kube-scheduler no longer sees a pod.
func isOver(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// fill hands the nodes and the pods on them to kube-scheduler's cache, as its event handlers do.
func fill(logger klog.Logger, of cache.Cache, promised nominations, objects []runtime.Object, asked []*v1.Pod) error {
	for _, object := range objects {
		if node, ok := object.(*v1.Node); ok {
			of.AddNode(logger, node)
		}
	}
	for _, object := range objects {
		pod, ok := object.(*v1.Pod)
		if !ok || slices.Contains(asked, pod) || isOver(pod) {
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
	objects, pods, err := decodeAll(w)
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
	if err := fill(logger, state, promised, objects, pods); err != nil {
		return nil, err
	}
	snapshot := cache.NewEmptySnapshot()
	if err := state.UpdateSnapshot(logger, snapshot); err != nil {
		return nil, err
	}
	made := &profile{plugins: map[string]fwk.Plugin{}, pods: pods, promised: promised, cache: state, snapshot: snapshot}
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
	for end := time.Now().Add(longestWait); !seesClaims(dra, objects); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return nil, errors.New("the claims of the world are not seen")
		}
	}
	made.nodes, err = snapshot.List()
	return made, err
}

// How long a profile may take to see what is there.
const longestWait = 20 * time.Second

// seesClaims says whether every claim on devices is seen, and every class that serves a resource.
func seesClaims(dra fwk.SharedDRAManager, objects []runtime.Object) bool {
	for _, object := range objects {
		if claim, ok := object.(*resourceapi.ResourceClaim); ok {
			if _, err := dra.ResourceClaims().Get(claim.Namespace, claim.Name); err != nil {
				return false
			}
		}
		if class, ok := object.(*resourceapi.DeviceClass); ok && class.Spec.ExtendedResourceName != nil {
			name := v1.ResourceName(*class.Spec.ExtendedResourceName)
			if dra.DeviceClassResolver().GetDeviceClass(name) == nil {
				return false
			}
		}
	}
	return true
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
	manager := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	// Which class serves which extended resource is learnt from events, as by kube-scheduler's handlers.
	if classes, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok {
		_, err = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(classes)
	}
	return manager, err
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
