#include "shape.hpp"

#include <algorithm>
#include <limits>

namespace meshwright {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As branches and not std::max: the compiler turns these into vector instructions.
inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }

// `exposed` of meshwright.cost.step.
inline double exposed(double communication_s, double hidden_behind_s, double tail) {
    return larger(tail * communication_s, communication_s - hidden_behind_s);
}

// `in_flight` of meshwright.cost.step.
double in_flight(std::int64_t position, std::int64_t stages, std::int64_t virtual_stages,
                 std::int64_t micro_batches) {
    if (virtual_stages == 1) {
        return static_cast<double>(std::min(micro_batches, stages - position));
    }
    const std::int64_t chunks =
        2 * (stages - position - 1) + (virtual_stages - 1) * stages + 1;
    return static_cast<double>(std::min(micro_batches * virtual_stages, chunks)) /
           static_cast<double>(virtual_stages);
}

bool runs_on(std::uint32_t devices, std::int64_t device) { return (devices >> device) & 1u; }

}  // namespace

Range partitions_of(const Tables &tables, std::int32_t pipeline) {
    const auto *begin = tables.partition_pipeline;
    const auto [first, last] = std::equal_range(begin, begin + tables.partitions, pipeline);
    return {first - begin, last - begin};
}

std::int64_t candidates_of(const Tables &tables, std::int64_t shape) {
    return tables.rows_per_base() * partitions_of(tables, tables.pipeline[shape]).size() *
           tables.mode_count();
}

ShapeEvaluator::ShapeEvaluator(const Tables &tables) : tables_(tables) {
    class_blocks_begin_.push_back(0);
    for (std::int64_t c = 0; c < tables.classes; ++c) {
        for (std::int64_t b = 0; b < tables.blocks; ++b) {
            const double count = tables.class_blocks[c * tables.blocks + b];
            if (count > 0.0) class_blocks_.push_back({b, count});
        }
        class_blocks_begin_.push_back(class_blocks_.size());
    }
}

std::span<const ShapeEvaluator::BlockCount> ShapeEvaluator::blocks_of(std::int64_t index) const {
    const auto c = static_cast<std::size_t>(index);
    return {class_blocks_.data() + class_blocks_begin_[c],
            class_blocks_begin_[c + 1] - class_blocks_begin_[c]};
}

double ShapeEvaluator::group_s(Collective kind, double dense, double expert, double calls,
                               double bytes_per_parameter) const {
    const double *latency_s = tables_.gather_latency_s, *s_per_byte = tables_.gather_s_per_byte;
    if (kind == Collective::kScatter) {
        latency_s = tables_.scatter_latency_s;
        s_per_byte = tables_.scatter_s_per_byte;
    } else if (kind == Collective::kReduce) {
        latency_s = tables_.reduce_latency_s;
        s_per_byte = tables_.reduce_s_per_byte;
    }
    // Replicas of a shard have no part in a gather.
    const bool gather = kind == Collective::kGather;
    const auto *dense_members = gather ? tables_.dense_shards : tables_.dense_ranks;
    const auto *expert_members = gather ? tables_.expert_shards : tables_.expert_ranks;
    double total = 0.0;
    if (dense > 0.0 && dense_members[shape_] > 1) {
        const auto link = tables_.dense_link[shape_];
        total += calls * latency_s[link] + dense * bytes_per_parameter * s_per_byte[link];
    }
    if (expert > 0.0 && expert_members[shape_] > 1) {
        const auto link = tables_.expert_link[shape_];
        total += calls * latency_s[link] + expert * bytes_per_parameter * s_per_byte[link];
    }
    return total;
}

ShapeEvaluator::SkippedModes ShapeEvaluator::choose_modes(std::int64_t shape) {
    const bool sharded = tables_.dense_shards[shape] > 1 || tables_.expert_shards[shape] > 1;
    SkippedModes skipped{0, 0};
    modes_.clear();
    for (std::int64_t z = 0; z < tables_.mode_count(); ++z) {
        if (!sharded && tables_.mode_needs_shards[z]) {
            ++skipped.unsharded;
        } else if (tables_.pipeline[shape] > tables_.mode_max_pipeline[z]) {
            ++skipped.zero_pipeline;
        } else {
            modes_.push_back(z);
        }
    }
    return skipped;
}

void ShapeEvaluator::prepare(std::int64_t shape, Range classes) {
    shape_ = shape;
    first_class_ = classes.first;
    const std::size_t count = modes_.size();
    update_s_.clear();
    for (std::int64_t t = 0; t < tables_.device_types; ++t) {
        for (const auto z : modes_) {
            update_s_.push_back(
                tables_.optimizer_s_per_parameter[t * tables_.mode_count() + z]);
        }
    }
    const std::size_t entries = static_cast<std::size_t>(classes.size()) * count;
    for (auto *column : {&states_.bytes, &states_.gather_s, &states_.backward_s,
                         &states_.reduce_s, &states_.restore_s, &states_.owned}) {
        column->resize(entries);
    }
    for (auto *column : {&peak_bytes_, &headroom_bytes_, &stage_s_, &slowest_s_,
                         &path_s_, &end_s_, &step_s_}) {
        column->resize(count);
    }
    for (std::int64_t c = classes.first; c < classes.last; ++c) prepare_class(c);
}

void ShapeEvaluator::prepare_class(std::int64_t index) {
    const std::int64_t base = tables_.base[shape_];
    double dense = 0.0, expert = 0.0, calls = 0.0, largest = 0.0;
    for (const auto &[block, count] : blocks_of(index)) {
        const double block_dense = tables_.dense_parameters[block * tables_.bases + base];
        const double block_expert = tables_.expert_parameters[block * tables_.bases + base];
        dense += count * block_dense;
        expert += count * block_expert;
        calls += count;
        largest = std::max(largest, block_dense + block_expert);
    }
    const double sharded = dense / static_cast<double>(tables_.dense_shards[shape_]) +
                           expert / static_cast<double>(tables_.expert_shards[shape_]);
    const auto owned = [&](bool is_sharded) { return is_sharded ? sharded : dense + expert; };

    std::size_t at = static_cast<std::size_t>(index - first_class_) * modes_.size();
    for (const auto z : modes_) {
        const StateMode &mode = tables_.modes[static_cast<std::size_t>(z)];
        const double gather_s =
            group_s(Collective::kGather, dense, expert, calls, mode.gather_bytes);
        const double scatter_s =
            group_s(Collective::kScatter, dense, expert, calls, mode.reduce_bytes);
        const double reduce_s =
            group_s(Collective::kReduce, dense, expert, calls, mode.reduce_bytes);
        double bytes = mode.parameter_bytes * owned(mode.parameter_sharded) +
                       mode.gradient_bytes * owned(mode.gradient_sharded) +
                       mode.optimizer_bytes * owned(mode.optimizer_sharded);
        // The block in use and the one being prefetched; the gradient on the wire.
        if (mode.gather_per_micro_batch) bytes += 2.0 * largest * mode.gather_bytes;
        if (mode.scatter_per_micro_batch) bytes += largest * mode.reduce_bytes;
        states_.bytes[at] = bytes;
        states_.gather_s[at] = mode.gather_per_micro_batch ? gather_s : 0.0;
        states_.backward_s[at] =
            states_.gather_s[at] + (mode.scatter_per_micro_batch ? scatter_s : 0.0);
        states_.reduce_s[at] =
            mode.reduce_at_step ? reduce_s : mode.scatter_at_step ? scatter_s : 0.0;
        states_.restore_s[at] = mode.gather_at_step ? gather_s : 0.0;
        states_.owned[at] = owned(mode.optimizer_sharded);
        ++at;
    }
}

ShapeEvaluator::RowTerms ShapeEvaluator::row_terms(std::int64_t index, std::int64_t row) const {
    RowTerms terms{0.0, 0.0};
    for (const auto &[block, count] : blocks_of(index)) {
        const std::int64_t at = block * tables_.rows + row;
        terms.activation_bytes += count * tables_.activation_bytes[at];
        terms.transient_bytes = std::max(terms.transient_bytes, tables_.transient_bytes[at]);
    }
    return terms;
}

bool ShapeEvaluator::memory(const Leaf &leaf) {
    const std::size_t count = modes_.size();
    std::fill(peak_bytes_.begin(), peak_bytes_.end(), 0.0);
    std::fill(headroom_bytes_.begin(), headroom_bytes_.end(), kInfinity);
    const std::int64_t stages = tables_.partition_pipeline[leaf.partition];
    const std::int64_t virtual_stages = tables_.partition_virtual[leaf.partition];

    for (std::int64_t c = leaf.classes.first; c < leaf.classes.last; ++c) {
        const RowTerms terms = row_terms(c, leaf.row);
        const double held =
            in_flight(tables_.class_first[c], stages, virtual_stages, leaf.micro_batches);
        const double row_bytes = held * terms.activation_bytes + terms.transient_bytes;
        const double *states =
            states_.bytes.data() + static_cast<std::size_t>(c - first_class_) * count;
        for (std::int64_t t = 0; t < tables_.device_types; ++t) {
            if (!runs_on(tables_.class_devices[c], t)) continue;
            const double fixed_bytes = row_bytes + tables_.framework_bytes[t];
            const double capacity_bytes = tables_.capacity_bytes[t];
            for (std::size_t i = 0; i < count; ++i) {
                const double bytes = states[i] + fixed_bytes;
                peak_bytes_[i] = larger(peak_bytes_[i], bytes);
                headroom_bytes_[i] = smaller(headroom_bytes_[i], capacity_bytes - bytes);
            }
        }
    }
    return std::any_of(headroom_bytes_.begin(), headroom_bytes_.end(),
                       [](double headroom_bytes) { return headroom_bytes >= 0.0; });
}

// Raises stage_s_ and end_s_ to what the class takes on one device type.
void ShapeEvaluator::stage_time(std::int64_t index, std::int64_t device, std::int64_t row,
                                double steady_hop_s) {
    double forward_s = 0.0, backward_s = 0.0;
    for (const auto &[block, count] : blocks_of(index)) {
        const std::int64_t at = (device * tables_.blocks + block) * tables_.rows + row;
        forward_s += count * tables_.forward_s[at];
        backward_s += count * tables_.backward_s[at];
    }
    const std::size_t count = modes_.size();
    const std::size_t offset = static_cast<std::size_t>(index - first_class_) * count;
    const double *const gather_s = states_.gather_s.data() + offset;
    const double *const both_s = states_.backward_s.data() + offset;
    const double *const reduce_s = states_.reduce_s.data() + offset;
    const double *const restore_s = states_.restore_s.data() + offset;
    const double *const owned = states_.owned.data() + offset;
    const double *const update_s = update_s_.data() + static_cast<std::size_t>(device) * count;
    double *const stage_s = stage_s_.data();
    double *const end_s = end_s_.data();

    const double hides_gather_s = tables_.overlap.gather * forward_s;
    const double hides_scatter_s = tables_.overlap.scatter * backward_s;
    const double tail = tables_.overlap.tail;
    const double pass_s = forward_s + backward_s + steady_hop_s;
    for (std::size_t i = 0; i < count; ++i) {
        const double data_s = exposed(gather_s[i], hides_gather_s, tail) +
                              exposed(both_s[i], hides_scatter_s, tail);
        stage_s[i] = larger(stage_s[i], pass_s + data_s);
        const double step_data_s = exposed(reduce_s[i], hides_scatter_s, tail) +
                                   exposed(restore_s[i], hides_gather_s, tail);
        end_s[i] = larger(end_s[i], step_data_s + update_s[i] * owned[i]);
    }
}

void ShapeEvaluator::time(const Leaf &leaf) {
    const std::size_t count = modes_.size();
    const std::int64_t stages = tables_.partition_pipeline[leaf.partition];
    const double virtual_stages = tables_.partition_virtual[leaf.partition];
    const auto link = tables_.hop_link[shape_];
    const double hop_s = stages > 1 ? tables_.hop_latency_s[link] +
                                          tables_.boundary_bytes[leaf.row] *
                                              tables_.hop_s_per_byte[link]
                                    : 0.0;
    const double steady_hop_s = 2.0 * virtual_stages * hop_s * (1.0 - tables_.overlap.p2p);

    std::fill(slowest_s_.begin(), slowest_s_.end(), 0.0);
    std::fill(path_s_.begin(), path_s_.end(), 0.0);
    std::fill(end_s_.begin(), end_s_.end(), 0.0);
    for (std::int64_t c = leaf.classes.first; c < leaf.classes.last; ++c) {
        std::fill(stage_s_.begin(), stage_s_.end(), 0.0);
        for (std::int64_t t = 0; t < tables_.device_types; ++t) {
            if (runs_on(tables_.class_devices[c], t)) stage_time(c, t, leaf.row, steady_hop_s);
        }
        const double multiplicity = tables_.class_multiplicity[c];
        for (std::size_t i = 0; i < count; ++i) {
            slowest_s_[i] = larger(slowest_s_[i], stage_s_[i]);
            path_s_[i] += multiplicity * stage_s_[i];
        }
    }
    const double micro_batches = static_cast<double>(leaf.micro_batches);
    const double once_s = 2.0 * static_cast<double>(stages - 1) * hop_s * tables_.overlap.p2p +
                          tables_.fixed_s;
    for (std::size_t i = 0; i < count; ++i) {
        step_s_[i] = micro_batches * slowest_s_[i] +
                     (path_s_[i] - slowest_s_[i]) / virtual_stages + once_s + end_s_[i];
    }
}

std::int64_t ShapeEvaluator::micro_batches_of(std::int64_t row) const {
    const std::int64_t per_round =
        std::int64_t{tables_.data[shape_]} * std::int64_t{tables_.micro_batch[row]};
    return tables_.global_batch % per_round == 0 ? tables_.global_batch / per_round : 0;
}

void ShapeEvaluator::run_leaf(const Leaf &leaf, Findings &findings) {
    const bool fits = memory(leaf);
    if (fits) time(leaf);
    for (std::size_t i = 0; i < modes_.size(); ++i) {
        const double headroom_bytes = headroom_bytes_[i];
        if (headroom_bytes < 0.0) {
            findings.exclude(tables_.rule.memory, 1);
            if (findings.misfit.admits(headroom_bytes)) {
                findings.misfit.add({shape_, leaf.row, leaf.partition, modes_[i], 0.0,
                                     peak_bytes_[i], headroom_bytes});
            }
            continue;
        }
        ++findings.evaluated;
        const bool top = findings.top.admits(step_s_[i]);
        const bool front = !findings.pareto.dominates(step_s_[i], peak_bytes_[i]);
        if (!top && !front) continue;
        const Candidate candidate{shape_,     leaf.row,       leaf.partition, modes_[i],
                                  step_s_[i], peak_bytes_[i], headroom_bytes};
        if (top) findings.top.add(candidate);
        if (front) findings.pareto.add(candidate);
    }
}

bool ShapeEvaluator::run(std::int64_t shape, Findings &findings, const std::atomic<bool> &stop,
                         std::atomic<std::int64_t> &done) {
    const Range partitions = partitions_of(tables_, tables_.pipeline[shape]);
    if (partitions.size() == 0) return true;
    const std::int64_t modes = tables_.mode_count();
    const Range classes{tables_.partition_classes[partitions.first],
                        tables_.partition_classes[partitions.last]};
    const SkippedModes skipped = choose_modes(shape);
    prepare(shape, classes);

    const std::int64_t first_row = tables_.base[shape] * tables_.rows_per_base();
    for (std::int64_t row = first_row; row < first_row + tables_.rows_per_base(); ++row) {
        if (stop.load(std::memory_order_relaxed)) return false;
        const std::int64_t below = partitions.size() * modes;
        done.fetch_add(below, std::memory_order_relaxed);
        if (tables_.row_rule[row] >= 0) {
            findings.exclude(tables_.row_rule[row], below);
            continue;
        }
        const std::int64_t micro_batches = micro_batches_of(row);
        if (micro_batches == 0) {
            findings.exclude(tables_.rule.batch, below);
            continue;
        }
        for (std::int64_t p = partitions.first; p < partitions.last; ++p) {
            const std::int64_t stages = tables_.partition_pipeline[p];
            if (tables_.partition_virtual[p] > 1 && (stages == 1 || micro_batches % stages != 0)) {
                findings.exclude(tables_.rule.interleave, modes);
                continue;
            }
            findings.exclude(tables_.rule.unsharded, skipped.unsharded);
            findings.exclude(tables_.rule.zero_pipeline, skipped.zero_pipeline);
            if (modes_.empty()) continue;
            run_leaf({row, p, micro_batches,
                      {tables_.partition_classes[p], tables_.partition_classes[p + 1]}},
                     findings);
        }
    }
    return true;
}

double ShapeEvaluator::step_s(const Candidate &candidate) {
    const std::int64_t p = candidate.partition;
    const Range classes{tables_.partition_classes[p], tables_.partition_classes[p + 1]};
    modes_ = {candidate.mode};
    prepare(candidate.shape, classes);
    time({candidate.row, p, micro_batches_of(candidate.row), classes});
    return step_s_.front();
}

}  // namespace meshwright
