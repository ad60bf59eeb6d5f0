// The uniform search: shapes shared out to threads, findings merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ranking.hpp"
#include "tables.hpp"

namespace meshwright {

struct SearchResult {
    std::vector<Candidate> best;    // by time
    std::vector<Candidate> pareto;  // by time
    std::vector<std::int64_t> excluded;
    std::int64_t candidates = 0;
    std::int64_t evaluated = 0;
    std::optional<Candidate> nearest_misfit;
    bool complete = false;
};

// Called on the calling thread before the work starts and about every 50 ms with the done
// fraction; returns false to stop. What it throws stops the search and is rethrown.
using Poll = std::function<bool(double)>;

SearchResult search_uniform(const Tables &tables, std::size_t top_k, std::size_t threads,
                            const Poll &poll);

}  // namespace meshwright
