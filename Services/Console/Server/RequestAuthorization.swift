import SyncModel

/// Decides whether a request may reach its route. All checks of rights, tokens and origins are here; pure (SEC13,
/// SEC14).
enum RequestAuthorization {
    /// - Parameters:
    ///   - instance: the instance that the path names.
    ///   - rules: the rules of the settings.
    /// - Throws: the first reason for a refusal.
    static func check(
        _ route: Route, _ facts: RequestFacts, _ principal: RequestPrincipal?, instance: InstanceID?,
        rules: EntryRules = EntryRules()
    ) throws(ConsoleFault) {
        if route.method != .get {
            // No page of another site can cause a browser to send the header of a program.
            guard principal?.proof == .bearer || !facts.isCrossSite(origin: rules.origin) else { throw .otherOrigin }
            if let principal, principal.proof == .cookie, route.access != .open,
                facts.formToken != principal.token.formToken
            {
                throw .otherOrigin
            }
        }
        if route.access != .open, principal == nil { throw .signedOut }
        if rules.requiresSecondFactor, let account = principal?.account, account.mayChange, !account.hasSecondFactor,
            route.access != .open, !route.isOwn
        {
            throw .secondFactorNeeded
        }
        guard route.access.allows(principal?.account, instance: instance) else { throw .notAllowed }
        if route.needsPassword, principal?.isConfirmed != true { throw .passwordNeeded }
    }
}
