// Measures the allocator that kube-scheduler uses, alone: no queue, no scoring, no API server.
//
// upstream fill NODES DEVICES PODS: the world of `cargo xtask bench`, equal devices in pairs of one
// NUMA node, pods that ask for two that agree on it. Prints pods a second for the first fit from the
// top of the list and for all nodes tried.
//
// upstream cases RUNS: questions from standard input, see cases.go.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

const driver = "gpu.nvidia.com"

// The default gates of Kubernetes 1.37.
var features = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

type classes struct{ class *resourceapi.DeviceClass }

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return []*resourceapi.DeviceClass{c.class}, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if name != c.class.Name {
		return nil, fmt.Errorf("no class %s", name)
	}
	return c.class, nil
}

func selector(expression string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
}

func fleet(nodes, devices int) ([]*v1.Node, map[string][]*resourceapi.ResourceSlice) {
	var all []*v1.Node
	slices := map[string][]*resourceapi.ResourceSlice{}
	for n := range nodes {
		name := fmt.Sprintf("node-%06d", n)
		all = append(all, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		slice.Spec.Driver = driver
		slice.Spec.NodeName = &name
		slice.Spec.Pool = resourceapi.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}
		for d := range devices {
			numa := int64(d / 2)
			slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
				Name: fmt.Sprintf("gpu-%02d", d),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"numa": {IntValue: &numa},
				},
				Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
					"memory": {Value: resource.MustParse("80Gi")},
				},
			})
		}
		slices[name] = []*resourceapi.ResourceSlice{slice}
	}
	return all, slices
}

func claim(n int) *resourceapi.ResourceClaim {
	attribute := resourceapi.FullyQualifiedName(driver + "/numa")
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("p-%08d-gpu", n), Namespace: "default",
	}}
	claim.Spec.Devices = resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{
			Name: "gpu",
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: driver,
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           2,
				Selectors: selector(
					`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0`),
			},
		}},
		Constraints: []resourceapi.DeviceConstraint{{MatchAttribute: &attribute}},
	}
	return claim
}

// fill places pods one after the other and returns how many there were a second.
func fill(nodes []*v1.Node, slices map[string][]*resourceapi.ResourceSlice, pods int, first bool) float64 {
	ctx := context.Background()
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	class.Spec.Selectors = selector(`device.driver == "gpu.nvidia.com"`)
	cache := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	taken := sets.New[structured.DeviceID]()
	var all []*resourceapi.ResourceSlice
	for _, node := range nodes {
		all = append(all, slices[node.Name]...)
	}
	start := time.Now()
	for n := range pods {
		state := structured.AllocatedState{
			AllocatedDevices:         taken,
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		}
		allocator, err := structured.NewAllocator(ctx, features, state, classes{class}, all, cache)
		if err != nil {
			panic(err)
		}
		var chosen []resourceapi.AllocationResult
		for _, node := range nodes {
			result, err := allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim(n)})
			if err != nil {
				panic(err)
			}
			if result != nil && chosen == nil {
				chosen = result
				if first {
					break
				}
			}
		}
		for _, result := range chosen {
			for _, device := range result.Devices.Results {
				taken.Insert(structured.MakeDeviceID(device.Driver, device.Pool, device.Device))
			}
		}
	}
	return float64(pods) / time.Since(start).Seconds()
}

func main() {
	var numbers []int
	for _, arg := range os.Args[2:] {
		n, err := strconv.Atoi(arg)
		if err != nil {
			panic(err)
		}
		numbers = append(numbers, n)
	}
	switch os.Args[1] {
	case "fill":
		nodes, slices := fleet(numbers[0], numbers[1])
		first, all := fill(nodes, slices, numbers[2], true), fill(nodes, slices, numbers[2]/10+1, false)
		fmt.Printf("%.1f %.1f\n", first, all)
	case "cases":
		if err := cases(numbers[0]); err != nil {
			panic(err)
		}
	}
}
