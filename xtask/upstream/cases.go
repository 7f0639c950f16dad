package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// How long kube-scheduler lets the allocator look at one node.
const filterTimeout = 10 * time.Second

// Questions that take longer than this are asked once.
const slow = 300 * time.Millisecond

// Programs that the cache holds: as many as in kube-scheduler's plugin.
const cached = 10

// A question: may these claims be allocated on this node? Others hold what they hold.
type question struct {
	Name     string                       `json:"name"`
	Features []string                     `json:"features"`
	Node     *v1.Node                     `json:"node"`
	Slices   []*resourceapi.ResourceSlice `json:"slices"`
	Classes  []*resourceapi.DeviceClass   `json:"classes"`
	Claims   []*resourceapi.ResourceClaim `json:"claims"`
	Held     []*resourceapi.ResourceClaim `json:"held"`
}

type byName map[string]*resourceapi.DeviceClass

func (c byName) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c byName) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("no class %s", name)
}

func gates(names []string) structured.Features {
	on := sets.New(names...)
	return structured.Features{
		AdminAccess:             on.Has("DRAAdminAccess"),
		CompatibilityGroups:     on.Has("DRADeviceCompatibilityGroups"),
		ConsumableCapacity:      on.Has("DRAConsumableCapacity"),
		DerivedAttributes:       on.Has("DRADerivedAttributes"),
		DeviceBindingAndStatus:  on.Has("DRADeviceBindingConditions"),
		DeviceTaints:            on.Has("DRADeviceTaints"),
		FractionalCapacityRange: on.Has("DRAFractionalCapacityRange"),
		ListTypeAttributes:      on.Has("DRAListTypeAttributes"),
		OptionalNodeOperations:  on.Has("DRAOptionalNodeOperations"),
		PartitionableDevices:    on.Has("DRAPartitionableDevices"),
		PrioritizedList:         on.Has("DRAPrioritizedList"),
	}
}

// held is what the claims of others take, as kube-scheduler's plugin gathers it.
func held(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

// ask answers the question once, from parsed objects, and says how long that took.
func ask(q *question, cache *cel.Cache) (time.Duration, string) {
	ctx, cancel := context.WithTimeout(context.Background(), filterTimeout)
	defer cancel()
	start := time.Now()
	lister := make(byName, len(q.Classes))
	for _, class := range q.Classes {
		lister[class.Name] = class
	}
	allocator, err := structured.NewAllocator(ctx, gates(q.Features), held(q.Held), lister, q.Slices, cache)
	var result []resourceapi.AllocationResult
	if err == nil {
		result, err = allocator.Allocate(ctx, q.Node, q.Claims)
	}
	taken := time.Since(start)
	switch {
	case err != nil && ctx.Err() != nil:
		return taken, "timed out"
	case err != nil:
		return taken, "error"
	case result == nil:
		return taken, "no"
	}
	return taken, "yes"
}

func newCache(q *question) *cel.Cache {
	on := sets.New(q.Features...)
	return cel.NewCache(cached, cel.Features{
		EnableConsumableCapacity: on.Has("DRAConsumableCapacity"),
		EnableListTypeAttributes: on.Has("DRAListTypeAttributes"),
	})
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// cases answers each question of the input, one a line, and prints for each its name, the medians
// in nanoseconds with an empty cache of CEL programs and with a warm one, and the answer.
func cases(runs int) error {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return err
		}
		warmed := newCache(&q)
		first, answer := ask(&q, warmed)
		var cold, warm []time.Duration
		if first > slow {
			cold, warm = append(cold, first), append(warm, first)
		}
		for range runs - len(cold)*runs {
			taken, _ := ask(&q, newCache(&q))
			cold = append(cold, taken)
			taken, _ = ask(&q, warmed)
			warm = append(warm, taken)
		}
		fmt.Printf("%s\t%d\t%d\t%s\n", q.Name, median(cold).Nanoseconds(), median(warm).Nanoseconds(), answer)
	}
}
