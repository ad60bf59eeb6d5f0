#include "search.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "shape.hpp"

namespace meshwright {

namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

// The state that the workers share.
class Crew {
public:
    Crew(const Tables &tables, std::int64_t candidates, std::size_t top_k, std::size_t threads)
        : tables_(tables), candidates_(candidates) {
        findings_.assign(threads, Findings(top_k, tables.rules));
        busy_ = threads;
        workers_.reserve(threads);
        try {
            for (auto &findings : findings_) {
                workers_.emplace_back([this, &findings] { work(findings); });
            }
        } catch (...) {
            join();
            throw;
        }
    }
    ~Crew() { join(); }
    Crew(const Crew &) = delete;
    Crew &operator=(const Crew &) = delete;

    // Waits for the workers, polling meanwhile. Returns whether all the work was done.
    bool wait(const Poll &poll) {
        std::unique_lock lock(mutex_);
        while (!finished_.wait_for(lock, kPollInterval, [this] { return busy_ == 0; })) {
            lock.unlock();
            const auto done = static_cast<double>(done_.load(std::memory_order_relaxed));
            if (!poll(std::min(1.0, done / static_cast<double>(candidates_)))) stop_ = true;
            lock.lock();
        }
        if (failure_) std::rethrow_exception(failure_);
        return !cut_short_;
    }

    const std::vector<Findings> &findings() const { return findings_; }

private:
    void work(Findings &result) {
        Findings findings = result;  // of this thread's own memory, not beside another's
        std::exception_ptr failure;
        bool cut_short = false;
        try {
            ShapeEvaluator evaluator(tables_);
            for (std::int64_t shape = next_++; shape < tables_.shapes && !cut_short;
                 shape = next_++) {
                cut_short = !evaluator.run(shape, findings, stop_, done_);
            }
            result = std::move(findings);
        } catch (...) {
            failure = std::current_exception();
            stop_ = true;
        }
        const std::lock_guard lock(mutex_);
        if (failure && !failure_) failure_ = failure;
        cut_short_ = cut_short_ || cut_short;
        if (--busy_ == 0) finished_.notify_all();
    }

    void join() {
        stop_ = true;
        for (auto &worker : workers_) {
            if (worker.joinable()) worker.join();
        }
    }

    const Tables &tables_;
    const std::int64_t candidates_;
    std::vector<Findings> findings_;
    std::vector<std::thread> workers_;
    std::atomic<std::int64_t> next_{0};
    std::atomic<std::int64_t> done_{0};
    std::atomic<bool> stop_{false};

    std::mutex mutex_;
    std::condition_variable finished_;
    std::size_t busy_ = 0;
    bool cut_short_ = false;
    std::exception_ptr failure_;
};

void merge(const std::vector<Findings> &parts, std::size_t top_k, SearchResult &result) {
    Findings all(top_k, static_cast<std::int64_t>(result.excluded.size()));
    for (const auto &part : parts) {
        for (const auto &candidate : part.top.unordered()) all.top.add(candidate);
        for (const auto &candidate : part.pareto.sorted()) all.pareto.add(candidate);
        if (part.misfit.get()) all.misfit.add(*part.misfit.get());
        result.evaluated += part.evaluated;
        std::transform(part.excluded.begin(), part.excluded.end(), result.excluded.begin(),
                       result.excluded.begin(), std::plus<>());
    }
    result.best = all.top.sorted();
    result.pareto = all.pareto.sorted();
    result.nearest_misfit = all.misfit.get();
}

}  // namespace

SearchResult search_uniform(const Tables &tables, std::size_t top_k, std::size_t threads,
                            const Poll &poll) {
    SearchResult result;
    result.excluded.assign(static_cast<std::size_t>(tables.rules), 0);
    for (std::int64_t shape = 0; shape < tables.shapes; ++shape) {
        result.candidates += candidates_of(tables, shape);
    }
    if (!poll(0.0)) return result;

    threads = std::clamp<std::size_t>(threads, 1, static_cast<std::size_t>(tables.shapes));
    Crew crew(tables, result.candidates, top_k, threads);
    result.complete = crew.wait(poll);
    merge(crew.findings(), top_k, result);
    if (result.nearest_misfit) {
        result.nearest_misfit->step_s = ShapeEvaluator(tables).step_s(*result.nearest_misfit);
    }
    return result;
}

}  // namespace meshwright
