// Answers, for worlds of objects, what kube-scheduler answers: its own default profile is built
// over each world and asked about pods, one after the other. A world is a line of JSON on standard
// input, with `objects` and `pods`; a line on standard output answers it, with a list of answers.
//
// An answer says which plugin stops the pod before any node; of each node, whether kube-scheduler
// would take the pod there, and every filter that refuses it (kube-scheduler itself stops at the
// first); the text of its FitError; what each plugin scores where the pod fits; and where it goes.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// Worlds answered at once: making one waits for informers more than it works.
const atOnce = 12

// A line may be long; this is the most that is read of one.
const longest = 64 << 20

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	metrics.Register()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), longest)
	answers := make(chan chan []byte, atOnce)
	var done sync.WaitGroup
	done.Go(func() { write(answers) })
	for lines.Scan() {
		line := append([]byte{}, lines.Bytes()...)
		answer := make(chan []byte, 1)
		answers <- answer
		go func() { answer <- answered(line) }()
	}
	close(answers)
	done.Wait()
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write prints the answers in the order of their worlds.
func write(answers <-chan chan []byte) {
	out := bufio.NewWriter(os.Stdout)
	for answer := range answers {
		out.Write(append(<-answer, '\n'))
		out.Flush()
	}
}

func answered(line []byte) []byte {
	var world world
	var answer any
	err := json.Unmarshal(line, &world)
	if err == nil {
		answer, err = ask(world)
	}
	if err != nil {
		answer = map[string]string{"error": err.Error()}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		text, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return text
}
