// All candidates of one shape: the closed form of meshwright.cost.step over
// rows x partitions x state modes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ranking.hpp"
#include "tables.hpp"

namespace meshwright {

// Those among ranks that share parameters.
enum class Collective { kGather, kScatter, kReduce };

// What one thread has found.
struct Findings {
    Findings(std::size_t top_k, std::int64_t rules)
        : top(top_k), excluded(static_cast<std::size_t>(rules), 0) {}

    TopCandidates top;
    ParetoFront pareto;
    NearestMisfit misfit;
    std::vector<std::int64_t> excluded;  // candidates per rule
    std::int64_t evaluated = 0;          // time and memory complete

    void exclude(std::int32_t rule, std::int64_t candidates) {
        excluded[static_cast<std::size_t>(rule)] += candidates;
    }
};

class ShapeEvaluator {
public:
    explicit ShapeEvaluator(const Tables &tables);

    // Evaluate every candidate of the shape. Returns false when `stop` was seen set;
    // then part of the shape is missing. `done` counts candidates, for progress.
    bool run(std::int64_t shape, Findings &findings, const std::atomic<bool> &stop,
             std::atomic<std::int64_t> &done);

    // Time of one candidate whether it fits or not.
    double step_s(const Candidate &candidate);

private:
    // Of one class under one mode; no row changes it.
    struct StateTerms {
        std::vector<double> bytes;      // states and buffers
        std::vector<double> gather_s;   // per micro-batch, before the forward
        std::vector<double> backward_s;  // per micro-batch, gather and scatter
        std::vector<double> reduce_s;   // per step
        std::vector<double> restore_s;  // per step, gather of the parameters
        std::vector<double> owned;      // parameters that the rank updates
    };
    // Of one class under one row; no mode changes it.
    struct RowTerms {
        double activation_bytes, transient_bytes;
    };
    struct BlockCount {
        std::int64_t block;
        double count;
    };
    // One row under one partition.
    struct Leaf {
        std::int64_t row, partition;
        std::int64_t micro_batches;
        Range classes;
    };

    // Of the shape, what its rows do not change: which modes apply, and how many do not.
    struct SkippedModes {
        std::int64_t unsharded, zero_pipeline;
    };
    SkippedModes choose_modes(std::int64_t shape);  // sets modes_
    void prepare(std::int64_t shape, Range classes);  // for modes_
    void prepare_class(std::int64_t index);
    double group_s(Collective kind, double dense, double expert, double calls,
                   double bytes_per_parameter) const;
    std::int64_t micro_batches_of(std::int64_t row) const;  // 0 when the batch does not divide
    void run_leaf(const Leaf &leaf, Findings &findings);
    bool memory(const Leaf &leaf);  // whether any mode fits
    void time(const Leaf &leaf);
    RowTerms row_terms(std::int64_t index, std::int64_t row) const;
    void stage_time(std::int64_t index, std::int64_t device, std::int64_t row,
                    double steady_hop_s);
    std::span<const BlockCount> blocks_of(std::int64_t index) const;

    const Tables &tables_;
    std::vector<BlockCount> class_blocks_;       // non-zero counts, class after class
    std::vector<std::size_t> class_blocks_begin_;  // [C + 1]

    // The shape at hand.
    std::int64_t shape_ = 0;
    std::int64_t first_class_ = 0;
    std::vector<std::int64_t> modes_;  // those that apply
    StateTerms states_;                // [class, mode that applies]
    std::vector<double> update_s_;     // [T, mode that applies], per owned parameter

    // The leaf at hand, one entry per mode that applies.
    std::vector<double> peak_bytes_, headroom_bytes_;
    std::vector<double> stage_s_, slowest_s_, path_s_, end_s_, step_s_;
};

}  // namespace meshwright
