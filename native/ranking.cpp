#include "ranking.hpp"

#include <algorithm>
#include <tuple>

namespace meshwright {

bool enumerated_before(const Candidate &a, const Candidate &b) {
    return std::tie(a.shape, a.row, a.partition, a.mode) <
           std::tie(b.shape, b.row, b.partition, b.mode);
}

bool better(const Candidate &a, const Candidate &b) {
    if (a.step_s != b.step_s) return a.step_s < b.step_s;
    if (a.peak_bytes != b.peak_bytes) return a.peak_bytes < b.peak_bytes;
    return enumerated_before(a, b);
}

void TopCandidates::add(const Candidate &candidate) {
    if (heap_.size() == capacity_) {
        if (!better(candidate, heap_.front())) return;
        std::pop_heap(heap_.begin(), heap_.end(), better);
        heap_.pop_back();
    }
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), better);
}

std::vector<Candidate> TopCandidates::sorted() const {
    std::vector<Candidate> result = heap_;
    std::sort(result.begin(), result.end(), better);
    return result;
}

bool ParetoFront::dominated_by_search(double step_s, double peak_bytes) {
    // The last point that is no slower has the least memory of all that are.
    const auto after = std::upper_bound(
        points_.begin(), points_.end(), step_s,
        [](double value, const Candidate &point) { return value < point.step_s; });
    if (after == points_.begin()) return false;
    const auto point = after - 1;
    if (!beats(*point, step_s, peak_bytes)) return false;
    hint_ = static_cast<std::size_t>(point - points_.begin());
    return true;
}

void ParetoFront::add(const Candidate &candidate) {
    if (dominates(candidate.step_s, candidate.peak_bytes)) return;
    auto first = std::lower_bound(
        points_.begin(), points_.end(), candidate.step_s,
        [](const Candidate &point, double value) { return point.step_s < value; });
    if (first != points_.end() && first->step_s == candidate.step_s &&
        first->peak_bytes == candidate.peak_bytes) {
        if (enumerated_before(candidate, *first)) *first = candidate;
        return;
    }
    auto last = first;
    while (last != points_.end() && last->peak_bytes >= candidate.peak_bytes) ++last;
    first = points_.erase(first, last);
    points_.insert(first, candidate);
}

void NearestMisfit::add(const Candidate &candidate) {
    if (!nearest_ || candidate.headroom_bytes > nearest_->headroom_bytes ||
        (candidate.headroom_bytes == nearest_->headroom_bytes &&
         enumerated_before(candidate, *nearest_))) {
        nearest_ = candidate;
    }
}

}  // namespace meshwright
