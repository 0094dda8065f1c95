import SyncModel

/// Whether a request may reach its route: the one place that asks for rights, tokens and origins; pure (SEC13, SEC14).
enum Gate {
    /// - Parameters:
    ///   - instance: the instance that the path names.
    ///   - rules: of the settings.
    /// - Throws: the first thing that stands in the way.
    static func check(
        _ route: Route, _ facts: RequestFacts, _ visitor: Visitor?, instance: InstanceID?,
        rules: EntryRules = EntryRules()
    ) throws(ConsoleFault) {
        if route.method != .get {
            // A program shows its token in a header, which no page of another site can make a browser send.
            guard visitor?.proof == .bearer || !facts.isFromElsewhere(than: rules.origin) else { throw .otherOrigin }
            if let visitor, visitor.proof == .cookie, route.access != .open,
                facts.formToken != visitor.token.formToken
            {
                throw .otherOrigin
            }
        }
        if route.access != .open, visitor == nil { throw .signedOut }
        if rules.requiresSecondFactor, let account = visitor?.account, account.mayChange, !account.hasSecondFactor,
            route.access != .open, !route.isOwn
        {
            throw .secondFactorNeeded
        }
        guard route.access.allows(visitor?.account, instance: instance) else { throw .notAllowed }
        if route.needsPassword, visitor?.isConfirmed != true { throw .passwordNeeded }
    }
}
