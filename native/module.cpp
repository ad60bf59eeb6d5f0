// The door to Python: reads the tables, lets go of the GIL, returns plain tuples.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "search.hpp"
#include "tables.hpp"

namespace nb = nanobind;

namespace meshwright {

namespace {

// Borrows the arrays of a Python object by attribute name and checks their sizes; memory
// safety rests on this check and on the index ranges that UniformTables validates.
class Reader {
public:
    explicit Reader(nb::handle source) : source_(source) {}

    template <typename T>
    const T *array(const char *name, std::initializer_list<std::int64_t> shape) {
        using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
        nb::object value = source_.attr(name);
        Array array;
        if (!nb::try_cast(value, array)) fail(name, "has the wrong type or is not contiguous");
        bool same = array.ndim() == shape.size();
        for (std::size_t i = 0; same && i < shape.size(); ++i) {
            same = array.shape(i) == static_cast<std::size_t>(shape.begin()[i]);
        }
        if (!same) fail(name, "has the wrong shape");
        const T *data = array.data();
        kept_.push_back(std::move(value));
        return data;
    }

    template <typename T>
    T scalar(const char *name) const {
        return nb::cast<T>(source_.attr(name));
    }

    nb::object object(const char *name) const { return source_.attr(name); }

private:
    [[noreturn]] static void fail(const char *name, const char *what) {
        throw nb::value_error((std::string("tables.") + name + " " + what).c_str());
    }

    nb::handle source_;
    std::vector<nb::object> kept_;
};

StateMode read_mode(nb::handle source) {
    const Reader mode(source);
    return {
        .parameter_bytes = mode.scalar<double>("parameter_bytes"),
        .gradient_bytes = mode.scalar<double>("gradient_bytes"),
        .optimizer_bytes = mode.scalar<double>("optimizer_bytes"),
        .parameter_sharded = mode.scalar<bool>("parameter_sharded"),
        .gradient_sharded = mode.scalar<bool>("gradient_sharded"),
        .optimizer_sharded = mode.scalar<bool>("optimizer_sharded"),
        .reduce_at_step = mode.scalar<bool>("reduce_at_step"),
        .scatter_at_step = mode.scalar<bool>("scatter_at_step"),
        .gather_at_step = mode.scalar<bool>("gather_at_step"),
        .scatter_per_micro_batch = mode.scalar<bool>("scatter_per_micro_batch"),
        .gather_per_micro_batch = mode.scalar<bool>("gather_per_micro_batch"),
        .gather_bytes = mode.scalar<double>("gather_bytes"),
        .reduce_bytes = mode.scalar<double>("reduce_bytes"),
    };
}

void read_dimensions(const Reader &reader, Tables &tables) {
    tables.device_types = reader.scalar<std::int64_t>("device_types");
    tables.blocks = reader.scalar<std::int64_t>("blocks");
    tables.rows = reader.scalar<std::int64_t>("rows");
    tables.bases = reader.scalar<std::int64_t>("bases");
    tables.shapes = reader.scalar<std::int64_t>("shapes");
    tables.partitions = reader.scalar<std::int64_t>("partitions");
    tables.classes = reader.scalar<std::int64_t>("classes");
    tables.links = reader.scalar<std::int64_t>("links");
    tables.rules = reader.scalar<std::int64_t>("rules");
}

void read_rows_and_shapes(Reader &reader, Tables &tables) {
    const auto T = tables.device_types, B = tables.blocks, R = tables.rows, Q = tables.bases;
    const auto S = tables.shapes;
    tables.micro_batch = reader.array<std::int32_t>("micro_batch", {R});
    tables.row_rule = reader.array<std::int32_t>("row_rule", {R});
    tables.forward_s = reader.array<double>("forward_s", {T, B, R});
    tables.backward_s = reader.array<double>("backward_s", {T, B, R});
    tables.activation_bytes = reader.array<double>("activation_bytes", {B, R});
    tables.transient_bytes = reader.array<double>("transient_bytes", {B, R});
    tables.boundary_bytes = reader.array<double>("boundary_bytes", {R});
    tables.dense_parameters = reader.array<double>("dense_parameters", {B, Q});
    tables.expert_parameters = reader.array<double>("expert_parameters", {B, Q});
    tables.base = reader.array<std::int32_t>("base", {S});
    tables.pipeline = reader.array<std::int32_t>("pipeline", {S});
    tables.data = reader.array<std::int32_t>("data", {S});
    tables.dense_link = reader.array<std::int32_t>("dense_link", {S});
    tables.expert_link = reader.array<std::int32_t>("expert_link", {S});
    tables.hop_link = reader.array<std::int32_t>("hop_link", {S});
    tables.dense_shards = reader.array<std::int32_t>("dense_shards", {S});
    tables.expert_shards = reader.array<std::int32_t>("expert_shards", {S});
    tables.dense_ranks = reader.array<std::int32_t>("dense_ranks", {S});
    tables.expert_ranks = reader.array<std::int32_t>("expert_ranks", {S});
}

void read_links_and_classes(Reader &reader, Tables &tables) {
    const auto B = tables.blocks, P = tables.partitions, C = tables.classes, G = tables.links;
    tables.gather_latency_s = reader.array<double>("gather_latency_s", {G});
    tables.gather_s_per_byte = reader.array<double>("gather_s_per_byte", {G});
    tables.scatter_latency_s = reader.array<double>("scatter_latency_s", {G});
    tables.scatter_s_per_byte = reader.array<double>("scatter_s_per_byte", {G});
    tables.reduce_latency_s = reader.array<double>("reduce_latency_s", {G});
    tables.reduce_s_per_byte = reader.array<double>("reduce_s_per_byte", {G});
    tables.hop_latency_s = reader.array<double>("hop_latency_s", {G});
    tables.hop_s_per_byte = reader.array<double>("hop_s_per_byte", {G});
    tables.partition_pipeline = reader.array<std::int32_t>("partition_pipeline", {P});
    tables.partition_virtual = reader.array<std::int32_t>("partition_virtual", {P});
    tables.partition_classes = reader.array<std::int32_t>("partition_classes", {P + 1});
    tables.class_blocks = reader.array<double>("class_blocks", {C, B});
    tables.class_first = reader.array<std::int32_t>("class_first", {C});
    tables.class_multiplicity = reader.array<std::int32_t>("class_multiplicity", {C});
    tables.class_devices = reader.array<std::uint32_t>("class_devices", {C});
}

void read_modes_and_devices(Reader &reader, Tables &tables) {
    for (nb::handle mode : nb::cast<nb::tuple>(reader.object("modes"))) {
        tables.modes.push_back(read_mode(mode));
    }
    const auto T = tables.device_types, Z = tables.mode_count();
    tables.mode_needs_shards = reader.array<std::uint8_t>("mode_needs_shards", {Z});
    tables.mode_max_pipeline = reader.array<std::int32_t>("mode_max_pipeline", {Z});
    tables.optimizer_s_per_parameter = reader.array<double>("optimizer_s_per_parameter", {T, Z});
    tables.capacity_bytes = reader.array<double>("capacity_bytes", {T});
    tables.framework_bytes = reader.array<double>("framework_bytes", {T});
    const nb::object overlap_object = reader.object("overlap");
    const Reader overlap(overlap_object);
    tables.overlap = {
        .gather = overlap.scalar<double>("gather"),
        .scatter = overlap.scalar<double>("scatter"),
        .p2p = overlap.scalar<double>("p2p"),
        .tail = overlap.scalar<double>("tail"),
    };
    tables.fixed_s = reader.scalar<double>("fixed_s");
    tables.global_batch = reader.scalar<std::int64_t>("global_batch");
    tables.rule = {
        .batch = reader.scalar<std::int32_t>("rule_batch"),
        .interleave = reader.scalar<std::int32_t>("rule_interleave"),
        .unsharded = reader.scalar<std::int32_t>("rule_unsharded"),
        .zero_pipeline = reader.scalar<std::int32_t>("rule_zero_pipeline"),
        .memory = reader.scalar<std::int32_t>("rule_memory"),
    };
}

nb::tuple to_python(const Candidate &c) {
    return nb::make_tuple(c.shape, c.row, c.partition, c.mode, c.step_s, c.peak_bytes,
                          c.headroom_bytes);
}

nb::list to_python(const std::vector<Candidate> &candidates) {
    nb::list result;
    for (const auto &candidate : candidates) result.append(to_python(candidate));
    return result;
}

nb::tuple search(nb::handle source, std::size_t top_k, std::size_t threads,
                 const nb::object &on_progress) {
    Reader reader(source);
    Tables tables{};
    read_dimensions(reader, tables);
    read_rows_and_shapes(reader, tables);
    read_links_and_classes(reader, tables);
    read_modes_and_devices(reader, tables);

    const Poll poll = [&on_progress](double done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (on_progress.is_none()) return true;
        bool go_on = false;
        if (!nb::try_cast(on_progress(done), go_on)) {
            throw nb::type_error("on_progress must return a bool: whether to go on");
        }
        return go_on;
    };
    SearchResult found;
    {
        const nb::gil_scoped_release no_gil;
        found = search_uniform(tables, top_k, threads, poll);
    }
    const nb::object misfit =
        found.nearest_misfit ? nb::object(to_python(*found.nearest_misfit)) : nb::none();
    return nb::make_tuple(to_python(found.best), to_python(found.pareto), found.excluded,
                          found.candidates, found.evaluated, misfit, found.complete);
}

}  // namespace

}  // namespace meshwright

NB_MODULE(_core, module) {
    module.doc() = "Native core of Meshwright: tables in, numbers out.";
    module.def("search_uniform", &meshwright::search, nb::arg("tables"), nb::arg("top_k"),
               nb::arg("threads"), nb::arg("on_progress").none(),
               "Evaluate every candidate of a UniformTables; see meshwright.search.native.");
}
