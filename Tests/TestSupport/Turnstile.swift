/// Limits the number of bodies that run at a time; the others wait in order. Tests use it for work that is too heavy
/// for a small machine.
package actor Turnstile {
    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    package init(places: Int) { self.places = places }

    /// Runs the body as soon as the limit permits it.
    package nonisolated func pass<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        await enter()
        do {
            let result = try await body()
            await leave()
            return result
        } catch {
            await leave()
            throw error
        }
    }

    private func enter() async {
        guard places == 0 else {
            places -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func leave() {
        guard !waiting.isEmpty else {
            places += 1
            return
        }
        waiting.removeFirst().resume()
    }
}
