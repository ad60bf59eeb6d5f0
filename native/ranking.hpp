// What is kept of the candidates: the best few, the Pareto set, the nearest misfit.
// Every order is total (ties fall to the enumeration order), so the outcome does not
// depend on which thread saw a candidate first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace meshwright {

struct Candidate {
    std::int64_t shape, row, partition, mode;  // compared in this order: the enumeration
    double step_s, peak_bytes, headroom_bytes;
};

bool enumerated_before(const Candidate &a, const Candidate &b);

// By time, then peak memory, then enumeration.
bool better(const Candidate &a, const Candidate &b);

class TopCandidates {
public:
    explicit TopCandidates(std::size_t capacity) : capacity_(capacity) {}

    // Whether a step time can still enter; cheap, for the inner loop.
    bool admits(double step_s) const {
        return heap_.size() < capacity_ || step_s <= heap_.front().step_s;
    }
    void add(const Candidate &candidate);
    const std::vector<Candidate> &unordered() const { return heap_; }
    std::vector<Candidate> sorted() const;

private:
    std::size_t capacity_;
    std::vector<Candidate> heap_;  // worst in front
};

// Not dominated in (step_s, peak_bytes); of equal points the first enumerated.
class ParetoFront {
public:
    // Whether some kept point is strictly better in one value and no worse in the other.
    bool dominates(double step_s, double peak_bytes) {
        if (hint_ < points_.size() && beats(points_[hint_], step_s, peak_bytes)) return true;
        return dominated_by_search(step_s, peak_bytes);
    }
    void add(const Candidate &candidate);
    const std::vector<Candidate> &sorted() const { return points_; }  // by time

private:
    static bool beats(const Candidate &point, double step_s, double peak_bytes) {
        return point.step_s <= step_s && point.peak_bytes <= peak_bytes &&
               (point.step_s < step_s || point.peak_bytes < peak_bytes);
    }
    bool dominated_by_search(double step_s, double peak_bytes);

    std::vector<Candidate> points_;  // time rises, memory falls
    std::size_t hint_ = 0;           // neighbours in the enumeration fall to the same point
};

// The candidate that lacks the least memory.
class NearestMisfit {
public:
    bool admits(double headroom_bytes) const {
        return !nearest_ || headroom_bytes >= nearest_->headroom_bytes;
    }
    void add(const Candidate &candidate);
    const std::optional<Candidate> &get() const { return nearest_; }

private:
    std::optional<Candidate> nearest_;
};

}  // namespace meshwright
