/// Runs cases concurrently, each with a subject of its own and a time limit.
struct ConformanceRun<Subject: Sendable>: Sendable {
    /// Number of cases that run at the same time.
    let atOnce: Int
    /// Time limit of one case.
    var caseLimit = Duration.seconds(150)
    /// Creates the subject of a case.
    let prepare: @Sendable () async throws -> Subject
    /// Removes the subject after the case, also after a failure.
    let cleanUp: @Sendable (Subject) async -> Void

    /// Runs the cases. Returns results in the order of the cases.
    func results(of cases: [ConformanceCase<Subject>]) async -> [ConformanceResult] {
        await withTaskGroup(of: (Int, ConformanceResult).self) { group in
            var results: [Int: ConformanceResult] = [:]
            for (index, item) in cases.enumerated() {
                if index >= atOnce, let (done, result) = await group.next() { results[done] = result }
                group.addTask { (index, await self.result(of: item)) }
            }
            for await (done, result) in group { results[done] = result }
            return cases.indices.compactMap { results[$0] }
        }
    }

    private func result(of item: ConformanceCase<Subject>) async -> ConformanceResult {
        let start = ContinuousClock.now
        let verdict = await verdict(of: item)
        return ConformanceResult(
            name: item.name, rule: item.rule, verdict: verdict, took: start.duration(to: .now))
    }

    private func verdict(of item: ConformanceCase<Subject>) async -> ConformanceVerdict {
        do {
            let subject = try await prepare()
            let verdict = await limited(item, subject)
            await cleanUp(subject)
            return verdict
        } catch {
            return .failed("could not prepare the case: \(error)")
        }
    }

    private func limited(_ item: ConformanceCase<Subject>, _ subject: Subject) async -> ConformanceVerdict {
        await withTaskGroup(of: ConformanceVerdict.self) { group in
            group.addTask {
                do {
                    try await item.check(subject)
                    return .passed
                } catch let missing as NotSupported {
                    return .unsupported("\(missing)")
                } catch {
                    return .failed("\(error)")
                }
            }
            group.addTask {
                try? await Task.sleep(for: caseLimit)
                return .failed("expected an end within \(caseLimit); seen: none")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failed("the case did not run")
        }
    }
}
