// The input of the uniform search: numbers only. Python has validated them
// (meshwright.search.tables documents every field); the arrays stay its property.
#pragma once

#include <cstdint>
#include <vector>

namespace meshwright {

struct StateMode {
    double parameter_bytes, gradient_bytes, optimizer_bytes;
    bool parameter_sharded, gradient_sharded, optimizer_sharded;
    bool reduce_at_step, scatter_at_step, gather_at_step;
    bool scatter_per_micro_batch, gather_per_micro_batch;
    double gather_bytes, reduce_bytes;
};

struct OverlapFactors {
    double gather, scatter, p2p, tail;
};

struct RuleIds {
    std::int32_t batch, interleave, unsharded, zero_pipeline, memory;
};

struct Tables {
    // Dimensions, in the letters of the Python documentation.
    std::int64_t device_types, blocks, rows, bases, shapes, partitions, classes, links, rules;

    // Rows: one local configuration under one base.
    const std::int32_t *micro_batch, *row_rule;      // [R]
    const double *forward_s, *backward_s;            // [T, B, R]
    const double *activation_bytes, *transient_bytes;  // [B, R]
    const double *boundary_bytes;                    // [R]

    // Bases: how parameters are divided inside a replica.
    const double *dense_parameters, *expert_parameters;  // [B, Q]

    // Shapes: degrees and the order of their axes.
    const std::int32_t *base, *pipeline, *data;                  // [S]
    const std::int32_t *dense_link, *expert_link, *hop_link;     // [S]
    const std::int32_t *dense_shards, *expert_shards;            // [S]
    const std::int32_t *dense_ranks, *expert_ranks;              // [S], shards x replicas

    // Links: what a group pays.
    const double *gather_latency_s, *gather_s_per_byte;    // [G]
    const double *scatter_latency_s, *scatter_s_per_byte;  // [G]
    const double *reduce_latency_s, *reduce_s_per_byte;    // [G]
    const double *hop_latency_s, *hop_s_per_byte;          // [G]

    // Partitions: how the layers are cut into stages, sorted by pipeline degree.
    const std::int32_t *partition_pipeline, *partition_virtual;  // [P]
    const std::int32_t *partition_classes;                       // [P + 1]

    // Classes: equal stages of one partition.
    const double *class_blocks;                                 // [C, B]
    const std::int32_t *class_first, *class_multiplicity;       // [C]
    const std::uint32_t *class_devices;                         // [C]

    // State modes.
    std::vector<StateMode> modes;            // [Z]
    const std::uint8_t *mode_needs_shards;   // [Z]
    const std::int32_t *mode_max_pipeline;   // [Z]
    const double *optimizer_s_per_parameter;  // [T, Z]

    // Devices and the step.
    const double *capacity_bytes, *framework_bytes;  // [T]
    OverlapFactors overlap;
    double fixed_s;
    std::int64_t global_batch;
    RuleIds rule;

    std::int64_t mode_count() const { return static_cast<std::int64_t>(modes.size()); }
    std::int64_t rows_per_base() const { return rows / bases; }
};

struct Range {
    std::int64_t first, last;  // half open
    std::int64_t size() const { return last - first; }
};

// Partitions for one pipeline degree.
Range partitions_of(const Tables &tables, std::int32_t pipeline);

// Candidates below one shape: rows x partitions x modes.
std::int64_t candidates_of(const Tables &tables, std::int64_t shape);

}  // namespace meshwright
