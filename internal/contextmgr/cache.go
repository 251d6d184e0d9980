package contextmgr

import "sync"

// cache keeps values up to a total size. When a new value does not fit, others are dropped, in
// no particular order. Callers must not change what it returns.
type cache[K comparable, V any] struct {
	mu      sync.Mutex
	max     int
	size    int
	entries map[K]cacheEntry[V]
}

type cacheEntry[V any] struct {
	value V
	size  int
}

func newCache[K comparable, V any](maxSize int) *cache[K, V] {
	return &cache[K, V]{max: maxSize, entries: map[K]cacheEntry[V]{}}
}

func (c *cache[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e.value, ok
}

func (c *cache[K, V]) put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
	if size > c.max {
		return
	}
	for other := range c.entries {
		if c.size+size <= c.max {
			break
		}
		c.drop(other)
	}
	c.entries[key] = cacheEntry[V]{value, size}
	c.size += size
}

// drop removes an entry. The mutex must be held.
func (c *cache[K, V]) drop(key K) {
	c.size -= c.entries[key].size
	delete(c.entries, key)
}

func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.size = 0
}
